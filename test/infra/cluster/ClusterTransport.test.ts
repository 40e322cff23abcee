import { connect, type Socket as NetSocket } from "node:net"
import { connect as connectTls, type ConnectionOptions } from "node:tls"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Socket } from "effect/socket/Socket"
import type { SocketServer } from "effect/socket/SocketServer"
import { ClusterTransport } from "#src/infra/cluster/ClusterTransport.ts"
import { freePort } from "#test/harness/ServerProcess.ts"
import { clusterSecret, holds } from "#test/agents/cluster/Machine.ts"

const handshakeMillis = 500

describe("a connection between machines", () => {
  const scope = Scope.makeUnsafe()
  const transport = new ClusterTransport(clusterSecret, handshakeMillis)
  /** protocols that were reached, with the first bytes that came */
  const reached: Array<readonly [string, string]> = []
  let address: { readonly host: string; readonly port: number }
  let serverOf: (protocol: string) => SocketServer["Service"]

  const echo = (protocol: string) => (socket: Socket) =>
    Effect.gen(function* () {
      const { pull } = yield* socket.reader
      const { write } = yield* socket.writer
      const pieces = yield* pull
      reached.push([protocol, pieces.map(String).join("")])
      yield* write(pieces.map(String).join(""))
      yield* Effect.never
    }).pipe(Effect.scoped)

  beforeAll(async () => {
    address = { host: "127.0.0.1", port: await freePort() }
    const listen = Effect.gen(function* () {
      serverOf = yield* transport.listen(address)
      for (const protocol of ["signalbox-runner", "signalbox-relay"])
        yield* Effect.forkScoped(serverOf(protocol).run(echo(protocol)))
    })
    await Effect.runPromise(Scope.provide(listen, scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const say = (by: ClusterTransport, protocol: string, text: string) =>
    Effect.gen(function* () {
      const socket = yield* by.connect(protocol, address)
      const { pull } = yield* socket.reader
      const { write } = yield* socket.writer
      yield* write(text)
      return (yield* pull).map((piece) => Buffer.from(piece).toString()).join("")
    }).pipe(Effect.scoped, Effect.exit, Effect.runPromise)

  it("reaches the protocol that it names", async () => {
    assert.deepStrictEqual(await say(transport, "signalbox-relay", "one"), Exit.succeed("one"))
    assert.deepStrictEqual(await say(transport, "signalbox-runner", "two"), Exit.succeed("two"))
    assert.deepStrictEqual(reached.splice(0), [
      ["signalbox-relay", "one"],
      ["signalbox-runner", "two"]
    ])
  })

  it("is refused for a protocol that none serves, until another room adds it; a name has one server", async () => {
    assert.isTrue(Exit.isFailure(await say(transport, "signalbox-browser", "early")))
    const added = await Effect.runPromise(Scope.provide(Scope.fork(scope), scope))
    const run = serverOf("signalbox-browser").run(echo("signalbox-browser"))
    await Effect.runPromise(Scope.provide(Effect.forkScoped(run, { startImmediately: true }), added))
    assert.deepStrictEqual(await say(transport, "signalbox-browser", "three"), Exit.succeed("three"))
    assert.isTrue(Exit.hasDies(await Effect.runPromiseExit(run)))
    assert.deepStrictEqual(await say(transport, "signalbox-browser", "four"), Exit.succeed("four"))
    await Effect.runPromise(Scope.close(added, Exit.void))
    assert.isTrue(Exit.isFailure(await say(transport, "signalbox-browser", "late")))
    assert.deepStrictEqual(
      reached.splice(0).map(([, text]) => text),
      ["three", "four"]
    )
  })

  it("is refused to a machine with another secret, before anything is read of it", async () => {
    const stranger = new ClusterTransport(clusterSecret.toUpperCase(), handshakeMillis)
    assert.isTrue(Exit.isFailure(await say(stranger, "signalbox-relay", "let me in")))
    assert.deepStrictEqual(reached, [])
  })

  it("is not made to a listener that does not know the secret: a client tells it nothing", async () => {
    const impostor = { host: "127.0.0.1", port: await freePort() }
    const heard: Array<string> = []
    const listen = Effect.gen(function* () {
      const serverOf = yield* new ClusterTransport(
        "another secret, of an impostor on the network",
        handshakeMillis
      ).listen(impostor)
      yield* Effect.forkScoped(
        serverOf("signalbox-relay").run((socket) =>
          Effect.scoped(
            Effect.flatMap(socket.reader, ({ pull }) =>
              Effect.map(pull, (pieces) => heard.push(...pieces.map(String)))
            )
          )
        )
      )
      const socket = yield* transport.connect("signalbox-relay", impostor)
      const { write } = yield* socket.writer
      return yield* Effect.exit(Effect.andThen(socket.reader, write("a user's key")))
    })
    assert.isTrue(Exit.isFailure(await Effect.runPromise(Effect.scoped(listen))))
    assert.deepStrictEqual(heard, [])
  })

  const outcomeOf = (socket: NetSocket): Promise<string> =>
    new Promise((resolve) => {
      let said = ""
      socket.on("data", (piece) => (said += piece.toString()))
      socket.on("error", () => (said += "!"))
      socket.on("close", () => resolve(said))
    })

  it("is closed where it is not TLS, or shows certificates in place of the secret", async () => {
    const plain = connect(address, () => void plain.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
    const said = await outcomeOf(plain)
    assert.notInclude(said, "HTTP")
    const tls = (options: ConnectionOptions) =>
      outcomeOf(connectTls({ ...address, rejectUnauthorized: false, ...options }))
    assert.strictEqual(await tls({}), "!")
    assert.strictEqual(await tls({ ALPNProtocols: ["signalbox-relay"], maxVersion: "TLSv1.2" }), "!")
    assert.deepStrictEqual(reached, [])
  })

  it("is closed when it stays silent in the handshake", async () => {
    let isClosed = false
    const silent = connect(address).on("close", () => (isClosed = true))
    silent.on("error", () => (isClosed = true))
    await holds("it is closed", () => isClosed)
  })
})
