import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { tools, type ToolMethod } from "#schemas/agents/ToolCall.ts"
import { indexOfLinear } from "#src/clients/agent/tools/EditFile.ts"
import { Schema } from "effect"
import fc from "fast-check"
import { codeOf, okResult, put, withWorkspace, type TestWorkspace } from "./TestWorkspace.ts"

/** The result, which has to be as the protocol says. */
const done = async (
  workspace: TestWorkspace,
  method: ToolMethod,
  params: unknown
): Promise<Record<string, unknown>> => {
  const result = okResult(await workspace.run(method, params))
  const schema = tools.find((tool) => tool.method === method)?.result
  assert.isDefined(schema)
  if (schema !== undefined)
    assert.isTrue(Schema.is(schema as Schema.Schema<unknown>)(result), JSON.stringify(result))
  return result as Record<string, unknown>
}

describe("fs.read", () => {
  it("gives lines from an offset, and where to go on", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "a"), "one\ntwo\r\nthree")
      assert.deepStrictEqual(await done(workspace, "fs.read", { path: "a" }), {
        content: "one\ntwo\r\nthree",
        totalLines: 3,
        truncated: false
      })
      assert.deepStrictEqual(
        await done(workspace, "fs.read", { path: join(workspace.root, "a"), offset: 2, limit: 1 }),
        {
          content: "two\r\n",
          totalLines: 3,
          truncated: true,
          nextOffset: 3
        }
      )
      assert.strictEqual(codeOf(await workspace.run("fs.read", { path: "a", offset: 4 })), "invalid_params")
      put(join(workspace.root, "empty"))
      assert.deepStrictEqual(await done(workspace, "fs.read", { path: "empty" }), {
        content: "",
        totalLines: 0,
        truncated: false
      })
    }))

  it("stops at 2,000 lines and at 50 KiB, and cuts one huge line between characters", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "lines"), "x\n".repeat(2_500))
      const lines = await done(workspace, "fs.read", { path: "lines", limit: 9_000 })
      assert.deepStrictEqual(
        [lines["truncated"], lines["nextOffset"], lines["totalLines"]],
        [true, 2_001, 2_500]
      )
      put(join(workspace.root, "wide"), `${"ü".repeat(500)}\n`.repeat(100))
      const wide = await done(workspace, "fs.read", { path: "wide" })
      assert.strictEqual(wide["nextOffset"], 52)
      put(join(workspace.root, "huge"), `a${"ü".repeat(60_000)}\nnext`)
      const huge = await done(workspace, "fs.read", { path: "huge" })
      assert.strictEqual(Buffer.byteLength(String(huge["content"])), 50 * 1024 - 1)
      assert.deepStrictEqual([huge["truncated"], huge["nextOffset"]], [true, 2])
    }))

  it("refuses what is not UTF-8 text, too large or not there, each with its code", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "nul"), "a\0b")
      put(join(workspace.root, "large"), "x".repeat(33 * 1024 * 1024))
      mkdirSync(join(workspace.root, "d"))
      const code = async (path: string): Promise<string> => codeOf(await workspace.run("fs.read", { path }))
      assert.strictEqual(await code("nul"), "binary")
      assert.strictEqual(await code("large"), "too_large")
      assert.strictEqual(await code("none"), "not_found")
      assert.strictEqual(await code("nul/x"), "not_found")
      assert.strictEqual(await code("d"), "invalid_params")
      assert.strictEqual(await code("."), "invalid_params")
      assert.strictEqual(await code("x".repeat(300)), "invalid_params")
    }))
})

describe("fs.write", () => {
  it("makes directories, keeps the mode of what it replaces, and leaves nothing else behind", () =>
    withWorkspace(async (workspace) => {
      assert.deepStrictEqual(await done(workspace, "fs.write", { path: "a/b/c.sh", content: "ü" }), {
        bytes: 2,
        created: true
      })
      const path = join(workspace.root, "a/b/c.sh")
      chmodSync(path, 0o4750)
      assert.deepStrictEqual(await done(workspace, "fs.write", { path: "a/b/c.sh", content: "new" }), {
        bytes: 3,
        created: false
      })
      assert.strictEqual(readFileSync(path, "utf8"), "new")
      assert.strictEqual(statSync(path).mode & 0o7777, 0o750)
      assert.deepStrictEqual(readdirSync(join(workspace.root, "a/b")), ["c.sh"])
    }))

  it("replaces neither a directory nor a file that is read-only", () =>
    withWorkspace(async (workspace) => {
      mkdirSync(join(workspace.root, "d"))
      put(join(workspace.root, "fixed"), "old")
      chmodSync(join(workspace.root, "fixed"), 0o444)
      assert.strictEqual(
        codeOf(await workspace.run("fs.write", { path: "d", content: "" })),
        "invalid_params"
      )
      assert.strictEqual(
        codeOf(await workspace.run("fs.write", { path: ".", content: "" })),
        "invalid_params"
      )
      assert.strictEqual(codeOf(await workspace.run("fs.write", { path: "fixed", content: "" })), "denied")
      assert.deepStrictEqual(readdirSync(workspace.root), ["d", "fixed"])
    }))

  it("asks before it replaces a file with several names, and never writes through to the others", () =>
    withWorkspace(async (workspace) => {
      linkSync(join(workspace.outside, "secret"), join(workspace.root, "linked"))
      const write = (): ReturnType<TestWorkspace["run"]> =>
        workspace.run("fs.write", { path: "linked", content: "new" })
      assert.strictEqual(codeOf(await write()), "denied")
      assert.deepStrictEqual(
        workspace.asked.map(({ kinds }) => kinds),
        [["hard_link"]]
      )
      workspace.answer = "once"
      assert.strictEqual(codeOf(await write()), "ok")
      assert.strictEqual(readFileSync(join(workspace.outside, "secret"), "utf8"), "secret")
      assert.strictEqual(readFileSync(join(workspace.root, "linked"), "utf8"), "new")
    }))
})

describe("fs.edit", () => {
  it("keeps byte order mark, CRLF and mixed line ends where nothing was edited, and tells a unified diff", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "a"), "\ufeffone\r\ntwo\r\nthree\nfour\r\n")
      const result = await done(workspace, "fs.edit", {
        path: "a",
        edits: [{ oldText: "two\nthree", newText: "2\n3" }]
      })
      assert.strictEqual(readFileSync(join(workspace.root, "a"), "utf8"), "\ufeffone\r\n2\r\n3\nfour\r\n")
      assert.deepStrictEqual(result, {
        diff: "--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@\n one\r\n-two\r\n-three\n+2\r\n+3\n four\r\n",
        replacements: 1
      })
    }))

  it("matches every edit against the file as it was, and makes all or none", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "a"), "a b c c")
      const edit = (...edits: ReadonlyArray<readonly [string, string]>): ReturnType<TestWorkspace["run"]> =>
        workspace.run("fs.edit", {
          path: "a",
          edits: edits.map(([oldText, newText]) => ({ oldText, newText }))
        })
      assert.strictEqual(codeOf(await edit(["a", "b"], ["b", "a"], ["x", "y"])), "not_found")
      assert.strictEqual(codeOf(await edit(["a", "x"], ["c", "y"])), "not_unique")
      assert.strictEqual(codeOf(await edit(["a b", "x"], ["b c ", "y"])), "invalid_params")
      assert.strictEqual(codeOf(await edit(["", "x"])), "invalid_params")
      assert.strictEqual(codeOf(await edit(["a", "a"])), "invalid_params")
      assert.strictEqual(readFileSync(join(workspace.root, "a"), "utf8"), "a b c c")
      assert.strictEqual(codeOf(await edit(["b", "a"], ["a", "b"])), "ok")
      assert.strictEqual(readFileSync(join(workspace.root, "a"), "utf8"), "b a c c")
    }))

  it("takes edits as JSON in a string, as one object, and beside the path", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "a"), "1 2 3")
      await done(workspace, "fs.edit", { path: "a", edits: '[{"oldText":"1","newText":"one"}]' })
      await done(workspace, "fs.edit", { path: "a", edits: { oldText: "2", newText: "two" } })
      await done(workspace, "fs.edit", { path: "a", oldText: "3", newText: "three" })
      assert.strictEqual(readFileSync(join(workspace.root, "a"), "utf8"), "one two three")
      assert.strictEqual(codeOf(await workspace.run("fs.edit", { path: "a", edits: "[" })), "invalid_params")
      assert.strictEqual(
        codeOf(await workspace.run("fs.edit", { path: "new/b", edits: [{ oldText: "a", newText: "b" }] })),
        "not_found"
      )
      assert.isFalse(existsSync(join(workspace.root, "new")))
    }))

  it("searches in linear time, also for what takes the engine minutes", () =>
    withWorkspace(async (workspace) => {
      put(join(workspace.root, "a"), "a".repeat(4_000_000))
      const oldText = `${"a".repeat(20_000)}b${"a".repeat(20_000)}`
      const outcome = await workspace.run("fs.edit", { path: "a", edits: [{ oldText, newText: "" }] })
      assert.strictEqual(codeOf(outcome), "not_found")
    }))

  it("searches as the engine does", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 5 }),
        fc.nat(80),
        fc.nat(80),
        fc.nat(9),
        (unit, many, few, from) => {
          const text = `${unit.repeat(300)}b${unit.repeat(many)}`
          const pattern = `${unit.repeat(200)}b${unit.repeat(few)}`
          return indexOfLinear(text, pattern, from) === text.indexOf(pattern, from)
        }
      )
    )
  })
})

describe("fs.list, fs.glob and fs.grep", () => {
  const project = ({ root }: { readonly root: string }): void => {
    put(join(root, ".gitignore"), "*.log\n/dist/\n!keep.log\n")
    put(join(root, "src/a.ts"), "export const Foo = 1\nconst b = 2\n")
    put(join(root, "src/deep/.gitignore"), "!x.log\n")
    put(join(root, "src/deep/x.log"), "foo\n")
    put(join(root, "src/deep/b.js"), `${"x".repeat(600)}foo\n`)
    put(join(root, "keep.log"), "foo\n")
    put(join(root, "a.log"), "foo\n")
    put(join(root, "dist/a.ts"), "foo\n")
    put(join(root, ".git/config"), "foo\n")
    put(join(root, "binary"), "foo\0")
  }

  it("lists names in order, directories with a slash, and says when there are more", () =>
    withWorkspace(
      async (workspace) => {
        const all = await done(workspace, "fs.list", {})
        assert.deepStrictEqual(all, {
          entries: [".git/", ".gitignore", "a.log", "binary", "dist/", "keep.log", "src/"],
          truncated: false
        })
        assert.deepStrictEqual(await done(workspace, "fs.list", { path: "src", limit: 1 }), {
          entries: ["a.ts"],
          truncated: true
        })
      },
      { before: project }
    ))

  it("finds by name or path, without what .gitignore files name", () =>
    withWorkspace(
      async (workspace) => {
        const find = async (params: object): Promise<unknown> =>
          (await done(workspace, "fs.glob", params))["entries"]
        assert.deepStrictEqual(await find({ pattern: "*.ts" }), ["src/a.ts"])
        assert.deepStrictEqual(await find({ pattern: "*.log" }), ["keep.log", "src/deep/x.log"])
        assert.deepStrictEqual(await find({ pattern: "src/**/*.{js,ts}" }), ["src/a.ts", "src/deep/b.js"])
        assert.deepStrictEqual(await find({ pattern: "*", path: "src" }), [
          "src/a.ts",
          "src/deep/",
          "src/deep/.gitignore",
          "src/deep/b.js",
          "src/deep/x.log"
        ])
        assert.deepStrictEqual(await find({ pattern: "*.ts", path: "dist" }), ["dist/a.ts"])
        assert.deepStrictEqual(await done(workspace, "fs.glob", { pattern: "**", limit: 1 }), {
          entries: [".gitignore"],
          truncated: true
        })
      },
      { before: project }
    ))

  it("finds text with the lines around it, cut at 500 characters, at most as many as asked for", () =>
    withWorkspace(
      async (workspace) => {
        assert.deepStrictEqual(
          await done(workspace, "fs.grep", {
            pattern: "foo",
            ignoreCase: true,
            glob: "*.{ts,log}",
            context: 1
          }),
          {
            matches: [
              "keep.log:1: foo",
              "src/a.ts:1: export const Foo = 1",
              "src/a.ts-2- const b = 2",
              "src/deep/x.log:1: foo"
            ],
            truncated: false
          }
        )
        const one = await done(workspace, "fs.grep", { pattern: "fo+$", limit: 1 })
        assert.deepStrictEqual(one, { matches: ["keep.log:1: foo"], truncated: true })
        const cut = await done(workspace, "fs.grep", { pattern: "foo", path: "src/deep/b.js" })
        assert.deepStrictEqual(cut, { matches: [`src/deep/b.js:1: ${"x".repeat(500)}…`], truncated: false })
        assert.deepStrictEqual(
          (await done(workspace, "fs.grep", { pattern: "= 1", literal: true }))["matches"],
          ["src/a.ts:1: export const Foo = 1"]
        )
        assert.strictEqual(codeOf(await workspace.run("fs.grep", { pattern: "(" })), "invalid_params")
      },
      { before: project }
    ))

  it("neither follows links nor leaves the workspace", () =>
    withWorkspace(async (workspace) => {
      symlinkSync(workspace.outside, join(workspace.root, "out"))
      symlinkSync(".", join(workspace.root, "round"))
      symlinkSync(join(workspace.outside, "secret"), join(workspace.root, "file"))
      assert.deepStrictEqual((await done(workspace, "fs.glob", { pattern: "**" }))["entries"], [])
      assert.deepStrictEqual((await done(workspace, "fs.grep", { pattern: "secret" }))["matches"], [])
      for (const path of ["out", "file"])
        assert.strictEqual(
          codeOf(await workspace.run("fs.grep", { pattern: "secret", path })),
          "outside_workspace"
        )
      assert.strictEqual(
        codeOf(await workspace.run("fs.glob", { pattern: "*", path: ".." })),
        "outside_workspace"
      )
      assert.strictEqual(codeOf(await workspace.run("fs.list", { path: "out" })), "outside_workspace")
    }))
})

it("takes parameters only as the protocol has them", () =>
  withWorkspace(async (workspace) => {
    for (const { method } of tools)
      for (const params of [undefined, null, 1, [], { path: 1 }, { path: "", pattern: "", command: "" }])
        if (method !== "fs.list" || typeof params !== "object" || params === null || "path" in params)
          assert.strictEqual(
            codeOf(await workspace.run(method, params)),
            "invalid_params",
            `${method} ${JSON.stringify(params)}`
          )
    const foreign = { callId: "x", method: "fs.remove", params: {}, timeoutMs: 1 } as never
    const hooks = {
      signal: new AbortController().signal,
      onOutput: () => undefined,
      approve: () => Promise.resolve("no" as const)
    }
    assert.strictEqual(codeOf(await workspace.runner.run(foreign, hooks)), "invalid_params")
  }))
