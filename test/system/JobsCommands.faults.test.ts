import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { signalbox } from "#test/cli/Signalbox.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { leaveDead } from "./DeadJobs.ts"

const command = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(["jobs", ...args], { SIGNALBOX_URL: url, SIGNALBOX_KEY: adminKey }))
  )

layer(TestServer.own(), { excludeTestServices: true })("signalbox jobs", (it) => {
  it.effect("lists queues and dead jobs, and has them wait again", () =>
    Effect.gen(function* () {
      yield* leaveDead("test-commands", ["a", "b", "c"])
      const listed = yield* command("list")
      assert.strictEqual(listed.code, 0, listed.err)
      assert.match(listed.out, /test-commands +0 +3 /)
      assert.match(listed.out, /lane +b +3 .*refused: b/)
      assert.notInclude(listed.out, "payload")
      assert.include(
        (yield* command("redrive", "test-commands", "--id", "b")).out,
        "1 jobs of test-commands wait again"
      )
      assert.include((yield* command("redrive", "test-commands")).out, "2 jobs of test-commands wait again")
      const unknown = yield* command("redrive", "test-none")
      assert.strictEqual(unknown.code === 0, false)
      assert.include(unknown.err, "queue: no job of test-none waits or is dead")
    })
  )
})
