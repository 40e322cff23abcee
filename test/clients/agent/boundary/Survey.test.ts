import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  utimesSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Survey, surveyBounds, type Surveyed } from "#src/clients/agent/boundary/Survey.ts"
import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { codeOf, git, put, withWorkspace } from "./TestWorkspace.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

const inRoot = async (use: (root: string) => Promise<void>): Promise<void> => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "survey-")))
  try {
    await use(root)
  } finally {
    // Node cannot remove what lies deeper than a path can be long.
    execFileSync("rm", ["-rf", root])
  }
}

const names = (root: string, { git, selfRunning }: Surveyed): ReadonlyArray<string> =>
  [...git, ...selfRunning.keys()].map((path) => path.slice(root.length + 1)).toSorted()

describe("a survey", () => {
  it("finds repositories and what runs by itself, whatever of it comes later, and forgets what is gone", () =>
    inRoot(async (root) => {
      const survey = new Survey(root)
      const seen = async (): Promise<ReadonlyArray<string>> => names(root, await survey.look())
      mkdirSync(join(root, "a", "b"), { recursive: true })
      assert.deepStrictEqual(await seen(), [])
      for (const name of ["HEAD", "objects/x", "refs/x"]) put(join(root, "a", "b", name))
      put(join(root, ".envrc"))
      assert.deepStrictEqual(await seen(), [".envrc", "a/b/HEAD"])
      renameSync(join(root, "a"), join(root, "c"))
      mkdirSync(join(root, "a", ".git"), { recursive: true })
      assert.deepStrictEqual(await seen(), [".envrc", "a/.git", "c/b/HEAD"])
      put(join(root, "c", "b", "commondir"))
      rmSync(join(root, ".envrc"))
      assert.deepStrictEqual(await seen(), ["a/.git", "c/b/HEAD", "c/b/commondir"])
    }))

  it("is not misled by times that were set back, nor by one directory in the place of another", () =>
    inRoot(async (root) => {
      const survey = new Survey(root)
      const past = new Date("2020-01-01")
      for (const name of ["a", "b"]) mkdirSync(join(root, name))
      for (const name of ["a", "b"]) utimesSync(join(root, name), past, past)
      assert.deepStrictEqual(names(root, await survey.look()), [])
      put(join(root, "a", ".npmrc"))
      utimesSync(join(root, "a"), past, past)
      assert.deepStrictEqual(names(root, await survey.look()), ["a/.npmrc"])
      renameSync(join(root, "b"), join(root, "t"))
      renameSync(join(root, "a"), join(root, "b"))
      renameSync(join(root, "t"), join(root, "a"))
      assert.deepStrictEqual(names(root, await survey.look()), ["b/.npmrc"])
    }))

  it("says when a bound was reached: directories, names, time, paths longer than the system takes", () =>
    inRoot(async (root) => {
      for (const name of ["a", "b", "c"]) put(join(root, name, "x"))
      const complete = (bounds: Partial<typeof surveyBounds>): Promise<boolean> =>
        new Survey(root, { ...surveyBounds, ...bounds }).look().then(({ isComplete }) => isComplete)
      assert.isTrue(await complete({ directories: 4, names: 7 }))
      assert.isFalse(await complete({ directories: 3 }))
      assert.isFalse(await complete({ names: 3 }))
      assert.isFalse(await complete({ millis: 0 }))
      const deep = `cd ${root}; d=${"d".repeat(200)}; for i in $(seq 25); do mkdir $d && cd $d; done`
      execFileSync("/bin/bash", ["-c", deep])
      assert.isFalse(await complete({}))
    }))
})

describeWith(bubblewrap, "a workspace that is too large to be looked through", () => {
  it("has every command asked for, with the reason, and the model is told what that means", () =>
    withWorkspace(
      async (workspace) => {
        const { run, asked } = workspace
        assert.strictEqual(codeOf(await run("proc.exec", { command: "ls" })), "denied")
        assert.deepStrictEqual(
          asked.map(({ kinds }) => kinds),
          [["repository"]]
        )
        assert.include(asked[0]?.detail ?? "", "too large to be looked through")
        workspace.answer = "once"
        assert.include((await workspace.exec("ls")).output, "too large to be looked through")
      },
      {
        sandbox: "auto",
        bounds: { ...surveyBounds, directories: 3 },
        before: ({ root }) => {
          for (const name of ["a", "b", "c"]) put(join(root, name, "x"))
        }
      }
    ))

  it("is one that a command has made so: then what it planted near the root is still found", () =>
    withWorkspace(
      async ({ root, exec, run, asked }) => {
        const { output } = await exec("mkdir -p x/1 x/2 x/3 x/4 x/5; touch .envrc")
        assert.include(output, ".envrc is taken up by itself by direnv")
        assert.include(output, "too large to be looked through")
        assert.isFalse(existsSync(join(root, ".envrc")))
        assert.strictEqual(codeOf(await run("proc.exec", { command: "ls" })), "denied")
        assert.strictEqual(asked.length, 1)
      },
      { sandbox: "auto", bounds: { ...surveyBounds, directories: 4 } }
    ))
})

describeWith(bubblewrap, "what the user makes", () => {
  it("between two commands is theirs: it is held for the next one, and not renamed", () =>
    withWorkspace(
      async ({ root, exec, asked }) => {
        await exec("true")
        put(join(root, ".vscode", "tasks.json"), "{}")
        put(join(root, "sub", ".envrc"), "own")
        // A person is slower than the steps in which times move.
        while (Date.now() - lstatSync(join(root, "sub", ".envrc")).ctimeMs < 50)
          await new Promise((resolve) => setTimeout(resolve, 5))
        const { output } = await exec("true")
        assert.strictEqual(output, "")
        assert.isTrue(existsSync(join(root, ".vscode", "tasks.json")))
        await exec("echo evil > .vscode/tasks.json; echo evil > sub/.envrc; rm -rf .vscode sub")
        assert.isTrue(existsSync(join(root, "sub", ".envrc")))
        assert.deepStrictEqual(asked, [])
      },
      { sandbox: "auto", before: ({ root }) => void git(root, "init", "--quiet") }
    ))

  it("where the root is no repository is theirs too", () =>
    withWorkspace(
      async ({ root, exec }) => {
        await exec("true")
        put(join(root, ".envrc"), "own")
        assert.strictEqual((await exec("true")).output, "")
        assert.isTrue(existsSync(join(root, ".envrc")))
      },
      { sandbox: "auto" }
    ))

  it("just before a command, and which the command then writes, is renamed as what a command makes", () =>
    withWorkspace(
      async ({ root, exec }) => {
        await exec("true")
        put(join(root, "sub", ".envrc"), "own")
        while (Date.now() - lstatSync(join(root, "sub", ".envrc")).ctimeMs < 50)
          await new Promise((resolve) => setTimeout(resolve, 5))
        await exec("[ ! -e sub/.envrc ] || echo evil > sub/.envrc")
        const path = join(root, "sub", ".envrc")
        assert.isTrue(!existsSync(path) || readFileSync(path, "utf8") === "own")
      },
      { sandbox: "auto", before: ({ root }) => void git(root, "init", "--quiet") }
    ))

  it("while a question is open is theirs too", () =>
    withWorkspace(
      async ({ root, runner }) => {
        const params = { command: "SIGNALBOX_ASK=commit true" }
        const approve = (): Promise<"once"> => {
          put(join(root, ".envrc"), "own")
          return Promise.resolve("once")
        }
        const hooks = { signal: new AbortController().signal, onOutput: () => undefined, approve }
        const call = { callId: "x", method: "proc.exec", params, timeoutMs: 0 } as const
        assert.strictEqual(codeOf(await runner.run(call, hooks)), "ok")
        assert.isTrue(existsSync(join(root, ".envrc")))
      },
      { sandbox: "auto" }
    ))
})
