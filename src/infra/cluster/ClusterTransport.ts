import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Effect, Option, type Scope } from "effect"
import { type Socket, SocketError, SocketOpenError } from "effect/socket/Socket"
import { SocketServer, type SocketServerError } from "effect/socket/SocketServer"
import { hkdfSync } from "node:crypto"
import { connect, type TLSSocket } from "node:tls"

/**
 * Connections between machines: TLS whose only key is `CLUSTER_SECRET` (RFC 5489, ECDHE_PSK). The handshake proves the
 * secret both ways before a byte of anything else is read, without sending it, and all bytes after it are encrypted with forward
 * secrecy; there are no certificates. TLS 1.2, because its cipher suites can rule certificates out: 1.3's cannot.
 */

const identity = "signalbox"
const connectMillis = 2_000
/** the system notices a machine without power after so many probes */
const keepAliveMillis = 15_000

/** The address of a process for the other ones of the cluster. */
export interface ClusterAddress {
  readonly host: string
  readonly port: number
}

/** Both sides of a connection, with their shared secret. */
export class ClusterTransport {
  private readonly secret: Uint8Array
  private readonly handshakeMillis: number

  constructor(secret: string, handshakeMillis: number) {
    this.handshakeMillis = handshakeMillis
    this.secret = new Uint8Array(hkdfSync("sha256", secret, "", "signalbox cluster 1", 32))
  }

  private get shared() {
    return {
      minVersion: "TLSv1.2",
      maxVersion: "TLSv1.2",
      ciphers: "ECDHE-PSK-CHACHA20-POLY1305"
    } as const
  }

  /** A connection to another machine, made when it is read. The handshake (ALPN) names its protocol: one port serves all. */
  connect(protocol: string, { host, port }: ClusterAddress): Effect.Effect<Socket> {
    const open = Effect.acquireRelease(
      Effect.sync(() =>
        connect({
          ...this.shared,
          host,
          port,
          ALPNProtocols: [protocol],
          pskCallback: () => ({ psk: this.secret, identity }),
          // There is no certificate whose name could be checked: the shared key is the identity.
          checkServerIdentity: () => undefined
        })
      ),
      (connection) => Effect.sync(() => connection.destroy())
    ).pipe(Effect.flatMap(secured))
    return NodeSocket.fromDuplex(open, { openTimeout: connectMillis })
  }

  /**
   * Listens at this process's own address until the scope closes. Answers the socket server of each protocol; connections
   * for protocols that none runs are refused.
   */
  listen({
    host,
    port
  }: ClusterAddress): Effect.Effect<
    (protocol: string) => SocketServer["Service"],
    SocketServerError,
    Scope.Scope
  > {
    return Effect.gen({ self: this }, function* () {
      const handlers = new Map<string, (socket: Socket) => Effect.Effect<unknown, unknown>>()
      const server = yield* NodeSocketServer.makeTls({
        ...this.shared,
        host,
        port,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: keepAliveMillis,
        handshakeTimeout: this.handshakeMillis,
        ALPNCallback: ({ protocols }) => protocols.find((protocol) => handlers.has(protocol)),
        pskCallback: (_, name) => (name === identity ? this.secret : null)
      })
      const serve = (socket: Socket) =>
        Effect.flatMap(Effect.serviceOption(NodeSocket.NetSocket), (connection) => {
          const handler = handlers.get(Option.match(connection, { onNone: () => "", onSome: doorOf }))
          // A connection that names no protocol, or one that has just ended, is closed.
          return handler === undefined ? Effect.scoped(Effect.asVoid(socket.reader)) : handler(socket)
        })
      yield* Effect.forkScoped(server.run(serve))
      return (protocol: string) =>
        SocketServer.of({
          address: server.address,
          run: (handler) =>
            Effect.contextWith((context) => {
              if (handlers.has(protocol)) return Effect.die(new Error(`${protocol} is served already`))
              handlers.set(protocol, (socket) => Effect.provideContext(handler(socket), context))
              return Effect.ensuring(
                Effect.never,
                Effect.sync(() => handlers.delete(protocol))
              )
            })
        })
    })
  }
}

/** Waits for the end of the handshake. `tls.connect` leaves out the options that `net.connect` would take. */
const secured = (connection: TLSSocket): Effect.Effect<TLSSocket, SocketError> =>
  Effect.callback((resume) => {
    connection.once("secureConnect", () => {
      connection.setNoDelay(true)
      connection.setKeepAlive(true, keepAliveMillis)
      resume(Effect.succeed(connection))
    })
    connection.on("error", (cause) =>
      resume(Effect.fail(new SocketError({ reason: new SocketOpenError({ kind: "Unknown", cause }) })))
    )
  })

const doorOf = (connection: object): string =>
  "alpnProtocol" in connection && typeof connection.alpnProtocol === "string" ? connection.alpnProtocol : ""
