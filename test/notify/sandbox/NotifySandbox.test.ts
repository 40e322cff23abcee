import { assert, describe } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import type { Scope } from "effect"
import { AppConfig, type Config } from "#src/Config.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { NotifySandbox } from "#src/notify/sandbox/NotifySandbox.ts"
import { egressOf, reasonOf, receiving, test, TestNames } from "#test/infra/egress/EgressStage.ts"
import { startSandbox } from "./SandboxClient.ts"

const ground = Layer.mergeAll(
  egressOf({ names: new TestNames({ "here.test": [["127.0.0.1"]] }) }),
  Readiness.layer
)

/** The services of a server with this setting, for as long as `use` takes. */
const withSetting = <A, E, R>(
  notifySandbox: Config["notifySandbox"],
  use: (services: {
    readonly egress: Egress["Service"]
    readonly readiness: Readiness["Service"]
    readonly origin: string | undefined
  }) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const egress = yield* Egress
    const readiness = yield* Readiness
    const layer = NotifySandbox.layer.pipe(Layer.provide(AppConfig.layerOf({ notifySandbox })))
    return yield* Effect.scoped(
      Effect.flatMap(Layer.build(layer), (context) =>
        use({ egress, readiness, origin: Context.get(context, NotifySandbox).origin })
      )
    )
  }).pipe(Effect.provide(ground))

/** How a request to an address ends; that of a sandbox is its page. */
const outcomeOf = (egress: Egress["Service"], url: string) =>
  Effect.gen(function* () {
    const checked = reasonOf(yield* Effect.result(egress.check(url)))
    const fetched = yield* Effect.result(egress.fetch({ url }))
    assert.strictEqual(reasonOf(fetched), checked, url)
    return Result.isSuccess(fetched) ? fetched.success.status : checked
  })

const portOf = (origin: string | undefined): number => Number(new URL(origin ?? "").port)

const eachOpens = (setting: Config["notifySandbox"]): Effect.Effect<void, unknown, Scope.Scope> =>
  withSetting(setting, ({ egress, origin, readiness }) =>
    Effect.gen(function* () {
      assert.match(origin ?? "", /^http:\/\/127\.0\.0\.1:\d+$/)
      const port = portOf(origin)
      assert.strictEqual(yield* outcomeOf(egress, `${origin}/`), 200)
      assert.isTrue(egress.isHttpAllowed(new URL(`${origin}/push/x`)))
      const { detail, status } = (yield* readiness.ask("channels")) ?? { status: "down" }
      assert.strictEqual(status, "up")
      assert.include(
        detail,
        `a sandbox of push services, webhooks and chats, which shows what came: ${origin}/`
      )

      const other = yield* receiving
      const refused = [
        [`${other.origin}/`, "loopback address"],
        [`http://127.0.0.2:${port}/`, "loopback address"],
        [`http://localhost:${port}/`, "loopback address"],
        [`http://here.test:${port}/`, "loopback address"],
        [`http://[::1]:${port}/`, "loopback address"],
        [`http://[::ffff:127.0.0.1]:${port}/`, "IPv4 address in IPv6"],
        [`http://0:${port}/`, "unspecified address"],
        ["http://127.0.0.1/", "loopback address"],
        [`http://user:secret@127.0.0.1:${port}/`, "credentials in the URL"]
      ] as const
      for (const [url, reason] of refused) {
        assert.strictEqual(yield* outcomeOf(egress, url), reason, url)
        if (reason !== "credentials in the URL") assert.isFalse(egress.isHttpAllowed(new URL(url)), url)
      }
      assert.deepStrictEqual(other.received, [])
    })
  )

describe("NOTIFY_SANDBOX", () => {
  for (const setting of ["auto", "on"] as const)
    test(
      `${setting}: a sandbox of this process, whose origin alone passes the egress check, over http`,
      eachOpens(setting)
    )

  test(
    "an address: the sandbox that runs alone there",
    Effect.flatMap(startSandbox(), ({ origin }) =>
      Effect.andThen(
        eachOpens({ origin }),
        withSetting({ origin }, (server) => Effect.sync(() => assert.strictEqual(server.origin, origin)))
      )
    )
  )

  test(
    "a port: there, and nowhere where another has it",
    Effect.gen(function* () {
      const free = yield* Effect.scoped(startSandbox())
      yield* withSetting(portOf(free.origin), ({ origin }) =>
        Effect.gen(function* () {
          assert.strictEqual(origin, free.origin)
          const taken = yield* Effect.result(withSetting(portOf(origin), () => Effect.void))
          assert.isTrue(Result.isFailure(taken))
          if (Result.isFailure(taken))
            assert.match(String(taken.failure), /sandbox of channels cannot listen: .*EADDRINUSE/)
        })
      )
    })
  )

  test(
    "off: there is none, and nothing of loopback passes",
    Effect.flatMap(startSandbox(), (alone) =>
      withSetting("off", ({ egress, origin, readiness }) =>
        Effect.gen(function* () {
          assert.strictEqual(origin, undefined)
          assert.strictEqual(yield* readiness.ask("channels"), undefined)
          assert.strictEqual(yield* outcomeOf(egress, `${alone.origin}/`), "loopback address")
          assert.isFalse(egress.isHttpAllowed(new URL(`${alone.origin}/`)))
        })
      )
    )
  )

  test(
    "opens its origin for as long as it is there",
    Effect.gen(function* () {
      const egress = yield* Egress
      const origin = "http://127.0.0.1:9"
      yield* Effect.scoped(
        Effect.andThen(
          egress.open(origin),
          Effect.map(Effect.result(egress.check(origin)), (checked) =>
            assert.isTrue(Result.isSuccess(checked))
          )
        )
      )
      assert.strictEqual(reasonOf(yield* Effect.result(egress.check(origin))), "loopback address")
    }).pipe(Effect.provide(ground))
  )
})
