import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { signalbox } from "#test/cli/Signalbox.ts"
import { newClient, sharedTree } from "../tree/TreeClient.ts"
import { ensured, written } from "../tree/TreeSteps.ts"

layer(sharedTree, { excludeTestServices: true, timeout: 600_000 })("signalbox files", (it) => {
  it.effect("lists, finds, moves, deletes and restores by path and by id", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const { key, userId } = yield* newClient
      const a = yield* ensured(userId, "docs/a")
      yield* written(a, "may.txt", "old")
      const may = yield* written(a, "may.txt", "new!")
      const run = (...args: ReadonlyArray<string>) =>
        Effect.promise(() => signalbox(["files", ...args], { SIGNALBOX_URL: url, SIGNALBOX_KEY: key }))
      const said = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const { code, err, out } = yield* run(...args)
        assert.strictEqual(code, 0, `${args.join(" ")}: ${out}${err}`)
        return out
      })
      assert.match(yield* said("ls", "docs/a"), /\nmay\.txt +4 +2 +2026-01-02T03:04:05\.678Z +fv_/)
      assert.match(yield* said("find", "MAY"), /\ndocs\/a\/may\.txt +4 +2 /)
      assert.match(yield* said("versions", may.id), /\n2 +yes +4 .*\n1 +3 /)
      assert.strictEqual(yield* said("mv", "docs/a/may.txt", "docs/june.txt"), "Moved to docs/june.txt\n")
      assert.strictEqual(yield* said("mv", "docs/june.txt", "docs/a/"), "Moved to docs/a/june.txt\n")
      assert.strictEqual(yield* said("mv", "docs/a", "b"), "Moved to b\n")
      assert.match(
        yield* said("rm", "b/june.txt"),
        /^In the trash; back by: signalbox files restore b\/june\.txt\n$/
      )
      assert.strictEqual(yield* said("restore", "b/june.txt"), "Restored b/june.txt, version 2\n")
      const refused = yield* Effect.all(
        [
          run("mv", "b/june.txt", "june.txt"),
          run("rm", "/"),
          run("restore", "b/other"),
          run("ls", "nowhere")
        ],
        { concurrency: 2 }
      )
      assert.notInclude(
        refused.map(({ code }) => code),
        0
      )
      assert.deepStrictEqual(
        refused.map(({ err }) =>
          err
            .trim()
            .split("\n")
            .at(-1)
            ?.replace(/^.*?(A file|The root|There is)/, "$1")
        ),
        [
          "A file cannot be in the root",
          "The root cannot be deleted",
          "There is no b/other in the trash",
          "There is no file or directory nowhere on the server"
        ]
      )
    })
  )
})
