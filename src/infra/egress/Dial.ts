import { type ConnectionOptions, connect as connectTls, type SecureContext } from "node:tls"
import { connect, isIP, type Socket } from "node:net"
import { Effect } from "effect"
import * as NetAddress from "effect/net/NetAddress"
import { problemOf } from "#src/infra/upstream/Upstream.ts"
import type { Limits } from "#src/Limits.ts"
import { EgressFailed } from "./EgressError.ts"

/** A host that was looked up and checked; it is reached at these addresses and no others. */
export interface Destination {
  /** a name, or an address without brackets */
  readonly host: string
  readonly port: number
  readonly addresses: ReadonlyArray<NetAddress.IpAddress>
  /** whether EGRESS_ALLOW names it, so that it may be spoken to in plain http */
  readonly isAllowed: boolean
}

export interface TlsOptions {
  readonly secureContext: SecureContext
  /** for ALPN; unset: none */
  readonly protocols?: Array<string>
}

/**
 * A socket to the first of the addresses that takes the connection; with `tls` once its certificate is checked against the
 * host. A failure or an interruption leaves none open.
 */
export const dial = (
  destination: Destination,
  limits: Limits,
  tls?: TlsOptions
): Effect.Effect<Socket, EgressFailed> =>
  Effect.suspend(() => {
    const opened = new Set<Socket>()
    const { host } = destination
    const millis = limits.egressConnectMillis
    const plain = connectFirst(destination, opened, limits.egressAttemptMillis)
    const secured =
      tls === undefined ? plain : Effect.flatMap(plain, (socket) => secure(socket, host, tls, opened))
    return secured.pipe(
      Effect.timeoutOrElse({
        duration: millis,
        orElse: () =>
          Effect.fail(new EgressFailed({ host, kind: "time", problem: `no connection in ${millis} ms` }))
      }),
      Effect.onError(() => Effect.sync(() => opened.forEach((socket) => socket.destroy())))
    )
  })

/** Errors of a socket between two owners: its end is told by "close" too. */
const nothing = (): void => undefined

/**
 * Tries one address after the other, the next when one has failed or has not answered for `attemptMillis` (RFC 8305, 5).
 */
const connectFirst = (
  { addresses, host, port }: Destination,
  opened: Set<Socket>,
  attemptMillis: number
): Effect.Effect<Socket, EgressFailed> =>
  Effect.callback<Socket, EgressFailed>((resume) => {
    const untried = [...addresses]
    let underWay = 0
    let next: NodeJS.Timeout | undefined
    const attempt = (): void => {
      clearTimeout(next)
      const address = untried.shift()
      if (address === undefined) return
      const socket = connect({ host: NetAddress.formatIp(address), port, noDelay: true, keepAlive: true })
      opened.add(socket)
      underWay++
      const failed = (error: Error): void => {
        opened.delete(socket)
        underWay--
        if (untried.length > 0) attempt()
        else if (underWay === 0)
          resume(Effect.fail(new EgressFailed({ host, kind: "connect", problem: problemOf(error) })))
      }
      socket.on("error", nothing).once("error", failed)
      socket.once("connect", () => {
        clearTimeout(next)
        untried.length = 0
        socket.off("error", failed)
        for (const other of opened) if (other !== socket) other.destroy()
        resume(Effect.succeed(socket))
      })
      if (untried.length > 0) next = setTimeout(attempt, attemptMillis)
    }
    attempt()
    return Effect.sync(() => {
      clearTimeout(next)
      // A failure that is under way tries no other one.
      untried.length = 0
    })
  })

const secure = (
  socket: Socket,
  host: string,
  { protocols, secureContext }: TlsOptions,
  opened: Set<Socket>
): Effect.Effect<Socket, EgressFailed> =>
  Effect.callback<Socket, EgressFailed>((resume) => {
    const options: ConnectionOptions = {
      socket,
      secureContext,
      // The certificate is checked against it. An address has no place in SNI (RFC 6066, 3).
      host,
      servername: isIP(host) === 0 ? host : "",
      // NODE_TLS_REJECT_UNAUTHORIZED does not count.
      rejectUnauthorized: true,
      ...(protocols === undefined ? {} : { ALPNProtocols: protocols })
    }
    const secured = connectTls(options)
    opened.add(secured)
    const failed = (problem: string): void =>
      resume(Effect.fail(new EgressFailed({ host, kind: "tls", problem })))
    // After the first of these the others change nothing.
    secured.on("error", (error) => failed(problemOf(error)))
    secured.once("close", () => failed("the connection was closed within the handshake"))
    secured.once("secureConnect", () => resume(Effect.succeed(secured)))
  })
