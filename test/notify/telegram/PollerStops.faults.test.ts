import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { Side } from "#test/notify/delivery/TwoServers.ts"
import { startSandbox } from "#test/notify/sandbox/SandboxClient.ts"
import { allConfirmed, botMessages, TelegramPeople } from "./TelegramPeople.ts"

layer(FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer)), { excludeTestServices: true })(
  "the reader of Telegram's updates",
  (it) => {
    it.effect(
      "is told to stop amid a long request for updates: it leaves nothing open, and another server goes on at once",
      () =>
        Effect.gen(function* () {
          const { dataDir, databaseUrl } = yield* TestStores
          const sql = yield* SqlClient
          const people = new TelegramPeople(yield* startSandbox())
          const side = (name: string) =>
            new Side({
              databaseUrl,
              dataDir: join(dataDir, name),
              // Neither is waited for here.
              leaseMillis: 600_000,
              pollMillis: 50_000,
              sandbox: people.sandbox.origin
            })
          const [one, two] = [side("one"), side("two")]
          yield* Effect.addFinalizer(() =>
            Effect.promise(() => Promise.all([one.end("SIGKILL"), two.end("SIGKILL")]))
          )
          yield* Effect.promise(() => one.start())
          const chat = yield* Effect.promise(() => people.openChat())
          yield* botMessages(people, chat, 1)
          // By the request for later ones, which waits.
          yield* allConfirmed(people)
          yield* Effect.promise(() => one.end("SIGTERM"))
          const left =
            yield* sql`SELECT j.open, l.holder FROM jobs j JOIN job_lanes l ON l.queue = j.queue AND l.lane = j.lane
            WHERE j.queue = 'telegram-poll'`
          assert.deepStrictEqual(left, [{ open: false, holder: null }])
          yield* Effect.promise(() => people.write(chat, "/help"))
          yield* Effect.promise(() => two.start())
          yield* botMessages(people, chat, 2)
          yield* allConfirmed(people)
          assert.lengthOf(yield* Effect.promise(() => people.fromBot(chat)), 2)
        }).pipe(Effect.scoped)
    )
  }
)
