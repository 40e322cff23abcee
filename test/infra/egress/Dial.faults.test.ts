import { createServer as createTlsServer } from "node:tls"
import type { AddressInfo, Socket } from "node:net"
import { Worker } from "node:worker_threads"
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Egress } from "#src/infra/egress/Egress.ts"
import { certificateFor } from "#test/harness/Certificate.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { rawServer, reasonOf, test, TestNames, withEgress } from "./EgressStage.ts"

const tlsServer = (certificate: { readonly key: string; readonly cert: string }) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createTlsServer>>((resume) => {
      const server = createTlsServer(certificate, (socket) => {
        socket.on("error", () => socket.destroy())
        socket.write("220 hello\r\n")
      })
      // Clients that refuse the certificate break the handshake off.
      server.on("tlsClientError", (_, socket) => socket.destroy())
      server.listen(0, "0.0.0.0", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

describe("sockets", () => {
  test(
    "with TLS are given where the certificate is trusted, of today, and of this host",
    Effect.gen(function* () {
      const good = certificateFor(["good.test", "127.0.0.1"])
      const old = certificateFor(["good.test"], { from: Date.now() - 10 * 86_400_000 })
      const certificates = good.cert + old.cert
      const names = new TestNames({ "good.test": [["127.0.0.1"]], "wrong.test": [["127.0.0.1"]] })
      const [port, oldPort] = [yield* tlsServer(good), yield* tlsServer(old)]
      const tried = (egress: Egress["Service"], host: string, at: number) =>
        Effect.result(Effect.scoped(egress.connect(host, at, { tls: true })))
      yield* withEgress({ allow: "127.0.0.0/8", names, certificates }, (egress) =>
        Effect.gen(function* () {
          for (const host of ["good.test", "GOOD.test.", "127.0.0.1", "0x7f.1"])
            assert.strictEqual(reasonOf(yield* tried(egress, host, port)), "reached", host)
          for (const host of ["wrong.test", "127.0.0.2"])
            assert.strictEqual(reasonOf(yield* tried(egress, host, port)), "tls", host)
          assert.match(
            String(yield* Effect.flip(egress.connect("wrong.test", port, { tls: true }))),
            /ALTNAME/
          )
          assert.match(
            String(yield* Effect.flip(egress.connect("good.test", oldPort, { tls: true }))),
            /EXPIRED/
          )
        })
      )
      const untrusted = yield* withEgress({ allow: "127.0.0.0/8", names }, (egress) =>
        Effect.flip(egress.connect("good.test", port, { tls: true }))
      )
      assert.match(untrusted.message, /SELF_SIGNED/)
    })
  )

  test(
    "close with their scope, and where the handshake is not answered",
    Effect.gen(function* () {
      const silent = yield* rawServer(() => undefined)
      const limits = { egressConnectMillis: 50 }
      yield* withEgress({ allow: "127.0.0.1", limits }, (egress) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const socket = yield* Scope.provide(egress.connect("127.0.0.1", silent.port), scope)
          assert.isFalse(socket.destroyed)
          yield* Scope.close(scope, Exit.void)
          assert.isTrue(socket.destroyed)
          const late = yield* Effect.flip(egress.connect("127.0.0.1", silent.port, { tls: true }))
          assert.strictEqual(late.message, "127.0.0.1: no connection in 50 ms")
          yield* eventually(
            "all are closed",
            Effect.sync(() => silent.sockets.size === 0)
          )
        })
      )
    })
  )

  test(
    "go to the next address where one refuses",
    Effect.gen(function* () {
      const { port } = yield* rawServer((socket) => socket.write("220 hello\r\n"))
      const names = new TestNames({ "two.test": [["::1", "127.0.0.1"]] })
      yield* withEgress({ allow: "::1,127.0.0.1", names }, (egress) =>
        Effect.gen(function* () {
          const socket: Socket = yield* egress.connect("two.test", port)
          assert.strictEqual(socket.remoteAddress, "127.0.0.1")
          const refused = yield* Effect.flip(egress.connect("[::1]", port))
          assert.match(refused.message, /^::1: ECONNREFUSED/)
        })
      )
    })
  )

  test(
    "go to the next address where one does not answer",
    Effect.gen(function* () {
      const { port, stop } = yield* Effect.promise(() => deafServer())
      yield* Effect.addFinalizer(() => Effect.promise(stop))
      yield* rawServer(() => undefined, { host: "127.0.0.2", port })
      const names = new TestNames({ "two.test": [["127.0.0.1", "127.0.0.2"]] })
      const limits = { egressAttemptMillis: 20, egressConnectMillis: 200 }
      yield* withEgress({ allow: "127.0.0.0/8", names, limits }, (egress) =>
        Effect.gen(function* () {
          // They take the places of its queue, until one has to wait.
          const tried = Effect.result(egress.connect("127.0.0.1", port))
          const outcomes = yield* Effect.all([tried, tried, tried, tried], { concurrency: 4 })
          assert.strictEqual(outcomes.map(reasonOf).sort().at(-1), "time")
          const { remoteAddress } = yield* egress.connect("two.test", port)
          assert.strictEqual(remoteAddress, "127.0.0.2")
        })
      )
    })
  )
})

/** A server whose thread is asleep, so that the system stops answering when its queue is full. */
const deafServer = async () => {
  const source = `const { parentPort } = require("node:worker_threads")
    const server = require("node:net").createServer().listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20_000))
    })`
  const worker = new Worker(source, { eval: true })
  const port = await new Promise<number>((resolve) => worker.once("message", resolve))
  return { port, stop: () => worker.terminate() }
}
