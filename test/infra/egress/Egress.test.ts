import { networkInterfaces } from "node:os"
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Layer, Metric } from "effect"
import { Dns, NetAddress } from "effect/net"
import { AppConfig } from "#src/Config.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"
import { captureLog } from "#test/harness/CapturedLog.ts"
import { corpusAddresses, loopback, others } from "./EgressCorpus.ts"
import { everywhere, reasonOf, receiving, test, TestNames, withEgress } from "./EgressStage.ts"

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .map(({ address }) => address)

/** The outcome of one notation by each of the ways out. */
const waysOut = (egress: Egress["Service"], host: string, port: number) => {
  const inUrl = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
  const outcome = <A>(way: Effect.Effect<A, { readonly _tag: string }>) =>
    Effect.map(Effect.result(way), reasonOf)
  return {
    resolve: outcome(egress.resolve(host, port)),
    connect: outcome(Effect.scoped(egress.connect(host, port))),
    http: outcome(egress.fetch({ url: `http://${inUrl}:${port}/` })),
    https: outcome(egress.fetch({ url: `https://${inUrl}:${port}/` })),
    "check of http": outcome(egress.check(`http://${inUrl}:${port}/`)),
    "check of https": outcome(egress.check(`https://${inUrl}:${port}/`))
  }
}

describe("hosts in any notation", () => {
  test(
    "are refused where they are loopback, or an interface's own, and nothing is reached",
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      yield* withEgress({ names: new TestNames(corpusAddresses) }, (egress) =>
        Effect.gen(function* () {
          for (const host of [...loopback, ...own]) {
            for (const [way, outcome] of Object.entries(waysOut(egress, host, port)))
              assert.match(yield* outcome, / address|IPv4 address in IPv6/, `${way} ${JSON.stringify(host)}`)
          }
        })
      )
      assert.deepStrictEqual(reachedAt, [])
    })
  )

  test(
    "reach the same server where EGRESS_ALLOW opens all of them",
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      yield* withEgress({ allow: "0.0.0.0/0,::/0", names: new TestNames(corpusAddresses) }, (egress) =>
        Effect.gen(function* () {
          // A connection to the other address of this one would leave the machine.
          for (const host of loopback.filter((name) => name !== "mixed.test")) {
            const { "check of http": check, connect, http } = waysOut(egress, host, port)
            const outcomes = [yield* connect, yield* http, yield* check]
            assert.deepStrictEqual(outcomes, ["reached", "reached", "reached"], host)
          }
        })
      )
      assert.isAtLeast(reachedAt.length, loopback.length)
    })
  )

  test(
    "are refused with the reason that they have, by resolve and connect",
    withEgress({ names: new TestNames(corpusAddresses) }, (egress) =>
      Effect.gen(function* () {
        assert.isAtLeast(loopback.length + others.length, 60)
        for (const [host, reason] of others) {
          assert.strictEqual(reasonOf(yield* Effect.result(egress.resolve(host, 443))), reason, host)
          const connected = yield* Effect.result(Effect.scoped(egress.connect(host, 443)))
          assert.strictEqual(reasonOf(connected), reason, host)
          const fetched = yield* Effect.result(egress.fetch({ url: `https://${host}/` }))
          assert.notStrictEqual(reasonOf(fetched), "reached", host)
          const checked = yield* Effect.result(egress.check(`https://${host}/`))
          assert.strictEqual(reasonOf(checked), reasonOf(fetched), host)
        }
        for (const port of [0, -1, 1.5, 65_536, Number.NaN])
          assert.strictEqual(reasonOf(yield* Effect.result(egress.resolve("8.8.8.8", port))), "not a port")
      })
    )
  )

  test(
    "are resolved where they are public: addresses as they are, names by IPv6 and IPv4",
    withEgress(
      { names: new TestNames({ "xn--bcher-kva.test": [["8.8.8.8", "2606:4700::1111"]] }) },
      (egress) =>
        Effect.gen(function* () {
          const found = yield* egress.resolve("Bücher.test.", 443)
          assert.deepStrictEqual(
            { ...found, addresses: found.addresses.map(NetAddress.formatIp) },
            {
              host: "xn--bcher-kva.test",
              port: 443,
              addresses: ["2606:4700::1111", "8.8.8.8"],
              isAllowed: false
            }
          )
          const { addresses, host } = yield* egress.resolve("0x8.8.0x808", 25)
          assert.deepStrictEqual([host, addresses.map(NetAddress.formatIp)], ["8.8.8.8", ["8.8.8.8"]])
        })
    )
  )
})

describe("names", () => {
  test(
    "that turn to another address are looked up once for a connection, which goes to the checked one",
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      const names = new TestNames({ "turn.test": [["127.0.0.2"], ["127.0.0.3"]] })
      yield* withEgress({ allow: "127.0.0.2", names }, (egress) =>
        Effect.gen(function* () {
          yield* Effect.scoped(egress.connect("turn.test", port))
          assert.deepStrictEqual([...names.asked].sort(), ["turn.test A", "turn.test AAAA"])
          assert.deepStrictEqual(reachedAt, ["127.0.0.2"])
          const again = yield* Effect.result(egress.fetch({ url: `http://turn.test:${port}/` }))
          assert.strictEqual(reasonOf(again), "loopback address")
        })
      )
      assert.deepStrictEqual(reachedAt, ["127.0.0.2"])
    })
  )

  test(
    "that were public when they were given are checked again when they are used",
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      const names = new TestNames({ "turn.test": [["8.8.8.8"], ["127.0.0.1"], ["8.8.8.8", "::1"]] })
      yield* withEgress({ names }, (egress) =>
        Effect.gen(function* () {
          assert.isFalse((yield* egress.resolve("turn.test", port)).isAllowed)
          for (let times = 0; times < 3; times++) {
            const used = yield* Effect.result(egress.fetch({ url: `https://turn.test:${port}/` }))
            assert.strictEqual(reasonOf(used), "loopback address")
          }
        })
      )
      assert.deepStrictEqual(reachedAt, [])
    })
  )

  test(
    "are refused for one address among public ones, and may not be asked for without end",
    Effect.gen(function* () {
      const names = new TestNames({
        "first.test": [["10.0.0.1", "8.8.8.8"]],
        "last.test": [["8.8.8.8", "8.8.4.4", "9.9.9.9", "10.0.0.1"]],
        "six.test": [["8.8.8.8", "2606:4700::1111", "fd00::1"]],
        "many.test": [Array.from({ length: 200 }, (_, index) => `8.8.8.${index}`)]
      })
      yield* withEgress({ names }, (egress) =>
        Effect.gen(function* () {
          for (const host of ["first.test", "last.test", "six.test"])
            assert.strictEqual(reasonOf(yield* Effect.result(egress.resolve(host, 443))), "private address")
          assert.lengthOf((yield* egress.resolve("many.test", 443)).addresses, 8)
          const nowhere = yield* Effect.flip(egress.resolve("nowhere.test", 443))
          assert.strictEqual(nowhere.message, "nowhere.test: its name has no address (NotFound)")
        })
      )
      const silent = Dns.make({ lookup: () => Effect.never, resolve: () => Effect.never })
      const late = yield* withEgress({ dns: silent, limits: { egressNameMillis: 20 } }, (egress) =>
        Effect.flip(egress.resolve("silent.test", 443))
      )
      assert.strictEqual(late.message, "silent.test: no address in 20 ms")
    })
  )

  test(
    "of strangers are asked of the name servers, and those of the operator of the system",
    Effect.gen(function* () {
      const names = new TestNames({ "a.corp.test": [["10.0.0.1"]], "a.test": [["8.8.8.8"]] })
      yield* withEgress({ allow: "*.corp.test", names }, ({ resolve }) =>
        Effect.forEach(["a.corp.test", "localhost", "a.test"], (host) => Effect.result(resolve(host, 443)))
      )
      assert.deepStrictEqual([...names.asked].sort(), ["a.corp.test", "a.test A", "a.test AAAA", "localhost"])
    })
  )

  test(
    "of the system's resolver are checked likewise",
    Effect.gen(function* () {
      const refused = yield* Effect.flip(Effect.flatMap(Egress, (egress) => egress.resolve("localhost", 80)))
      assert.strictEqual(
        refused.message,
        "Access to localhost is blocked: loopback address (EGRESS_ALLOW can open it)"
      )
    }).pipe(
      Effect.provide(
        Egress.layer.pipe(Layer.provide(AppConfig.layerOf({ limits: { egressLogPerMinute: 0 } })))
      )
    )
  )
})

describe("the own addresses", () => {
  test(
    "are refused though they are public, and the operator's addresses are not asked about",
    Effect.gen(function* () {
      const receiver = yield* receiving
      receiver.otherwise = { status: 200, body: "{}" }
      const interfaces = () => ({ eth0: [{ address: "8.8.4.4" }, { address: "2606:4700::9" }] })
      yield* withEgress({ interfaces }, (egress) =>
        Effect.gen(function* () {
          for (const host of ["8.8.4.4", "2606:4700::9"])
            assert.strictEqual(reasonOf(yield* Effect.result(egress.resolve(host, 443))), "own address")
          const { port } = new URL(receiver.origin)
          const refused = yield* Effect.result(egress.resolve("127.0.0.1", Number(port)))
          assert.strictEqual(reasonOf(refused), "loopback address")
          const upstream = yield* Upstream
          const { status } = yield* upstream.get("/models", { maxBytes: 100, timeoutMillis: 5_000 })
          assert.strictEqual(status, 200)
        })
      ).pipe(
        Effect.provide(
          Upstream.layer.pipe(
            Layer.provide(AppConfig.layerOf({})),
            Layer.provide(
              Layer.succeed(UpstreamAddress, { url: receiver.origin, apiKey: undefined, isSandbox: false })
            )
          )
        )
      )
    })
  )
})

describe("refusals", () => {
  test(
    "are counted by reason and logged without path and query, some a minute",
    Effect.gen(function* () {
      yield* withEgress({ limits: { egressLogPerMinute: 3 } }, (egress) =>
        Effect.gen(function* () {
          const counted = Effect.map(Metric.snapshot, (all) =>
            all.flatMap(({ attributes, id, state }) =>
              id === "signalbox_egress_refused_total" && attributes?.["reason"] === "private address"
                ? [state]
                : []
            )
          )
          const logged = yield* captureLog(
            Effect.forEach(Array.from({ length: 10 }), () =>
              Effect.result(egress.fetch({ url: "https://10.0.0.5/path?key=secret" }))
            )
          )
          const line = "Access to 10.0.0.5 is blocked: private address (EGRESS_ALLOW can open it)"
          assert.deepStrictEqual(logged.split("\n"), [line, line, line])
          assert.deepInclude(yield* counted, { count: 10, incremental: true })
        })
      )
    })
  )

  test(
    "are at once where too many are under way",
    Effect.gen(function* () {
      const silent = Dns.make({ lookup: () => Effect.never, resolve: () => Effect.never })
      yield* withEgress({ dns: silent, limits: { egressUnderWay: 2 } }, (egress) =>
        Effect.gen(function* () {
          const held = yield* Effect.forEach(["a.test", "b.test"], (host) =>
            Effect.forkChild(Effect.result(egress.resolve(host, 443)), { startImmediately: true })
          )
          const busy = yield* Effect.result(egress.fetch({ url: "https://10.0.0.5/" }))
          assert.strictEqual(reasonOf(busy), "busy")
          yield* Fiber.interruptAll(held)
          const free = yield* Effect.result(egress.fetch({ url: "https://10.0.0.5/" }))
          assert.strictEqual(reasonOf(free), "private address")
        })
      )
    })
  )
})
