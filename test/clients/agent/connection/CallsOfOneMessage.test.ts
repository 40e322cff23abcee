import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ToolResult } from "#schemas/agents/ClientFrame.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { bash, type CallRig, edit, read, withCalls, write } from "./CallRig.ts"

const content = (
  { result }: ToolResult | undefined = { type: "tool.result", callId: "", ok: false, durationMs: 0 }
) => (result as { readonly content: string } | undefined)?.content

const output = ({ result }: ToolResult): string => (result as { readonly output: string }).output

const done = (results: ReadonlyArray<ToolResult>): void =>
  assert.deepStrictEqual(
    results.flatMap(({ error }) => (error === undefined ? [] : [error])),
    []
  )

const file = ({ workspace }: CallRig, name: string): string =>
  readFileSync(join(workspace.root, name), "utf8")

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index};\n`).join("")

describe("edits of one file in one message", () => {
  it("are all made", () =>
    withCalls(async (rig) => {
      writeFileSync(join(rig.workspace.root, "f"), "a\nb\n")
      done(await rig.message([edit("f", "a", "A"), edit("f", "b", "B")]))
      assert.strictEqual(file(rig, "f"), "A\nB\n")
    }))

  it("are all made when they spell its path in different ways: links, .., whole paths, other names of it", () =>
    withCalls(async (rig) => {
      const { root } = rig.workspace
      mkdirSync(join(root, "d/e"), { recursive: true })
      writeFileSync(join(root, "d/f"), lines(6))
      symlinkSync("d", join(root, "l"))
      symlinkSync("../l/f", join(root, "d/g"))
      const paths = ["d/f", "./d/e/../f", join(root, "d//f"), "l/f", "d/g", "l/g"]
      done(await rig.message(paths.map((path, index) => edit(path, `line ${index};`, `LINE ${index};`))))
      assert.strictEqual(file(rig, "d/f"), lines(6).toUpperCase())
    }))

  it("are made in their order", () =>
    withCalls(async (rig) => {
      const texts = Array.from({ length: 8 }, (_, index) => `${index}`)
      const calls = texts.map((text) => write("new/f", text))
      const results = await rig.message([
        ...calls,
        ...texts.map((_, n) => edit("new/f", n === 0 ? "7" : `e${n}`, `e${n + 1}`))
      ])
      done(results)
      assert.deepStrictEqual(
        results.slice(0, 8).map(({ result }) => (result as { created: boolean }).created),
        texts.map((_, index) => index === 0)
      )
      assert.strictEqual(file(rig, "new/f"), "e8")
    }))

  it("of two names of one file ask about the other name once: then it is a file of its own", () =>
    withCalls(async (rig) => {
      writeFileSync(join(rig.workspace.root, "f"), "a\nb\n")
      linkSync(join(rig.workspace.root, "f"), join(rig.workspace.root, "g"))
      done(await rig.message([{ ...edit("f", "a", "A"), answer: "once" }, edit("g", "b", "B")]))
      assert.deepStrictEqual([file(rig, "f"), file(rig, "g")], ["A\nb\n", "a\nB\n"])
    }))
})

describe("a call in a message", () => {
  it("that reads, lists or searches sees what the calls before it did, and nothing of those behind it", () =>
    withCalls(async (rig) => {
      writeFileSync(join(rig.workspace.root, "f"), "old\n")
      const results = await rig.message([
        read("f"),
        { method: "fs.grep", params: { pattern: "old|new" } },
        edit("f", "old", "new"),
        read("./f"),
        write("d/g", "new\n"),
        { method: "fs.list", params: {} },
        { method: "fs.glob", params: { pattern: "**/*" } },
        { method: "fs.grep", params: { pattern: "old|new" } },
        write(".gitignore", "d\n"),
        { method: "fs.glob", params: { pattern: "*", path: "d" } },
        write("f", "last\n")
      ])
      done(results)
      const of = (index: number): unknown => results[index]?.result
      assert.deepStrictEqual([content(results[0]), content(results[3])], ["old\n", "new\n"])
      assert.deepStrictEqual(of(1), { matches: ["f:1: old"], truncated: false })
      assert.deepStrictEqual(of(5), { entries: ["d/", "f"], truncated: false })
      assert.deepStrictEqual(of(6), { entries: ["d/", "d/g", "f"], truncated: false })
      assert.deepStrictEqual(of(7), { matches: ["d/g:1: new", "f:1: new"], truncated: false })
      assert.deepStrictEqual(of(9), { entries: ["d/g"], truncated: false })
    }))

  it("that is a command runs behind the calls before it and before those behind it", () =>
    withCalls(async (rig) => {
      const results = await rig.message([
        write("f", "1\n"),
        bash("cat f; sleep 0.2; echo 2 >> f; ln -s f g"),
        edit("g", "2", "two"),
        edit("f", "1", "one"),
        bash("cat f; mkdir d; mv f d/f; rm g"),
        read("d/f"),
        read("f")
      ])
      assert.deepStrictEqual(
        [results[1], results[4]].map((result) => result && output(result)),
        ["1\n", "one\ntwo\n"]
      )
      assert.strictEqual(content(results[5]), "one\ntwo\n")
      assert.strictEqual(results[6]?.error?.code, "not_found")
    }))

  it("that makes a directory or a file where another call wants the other is answered as in its order", () =>
    withCalls(async (rig) => {
      const results = await rig.message([
        write("a/b", ""),
        write("a", ""),
        write("c", ""),
        write("c/d", ""),
        read("a/b/e")
      ])
      assert.deepStrictEqual(
        results.map(({ error }) => error?.code),
        [undefined, "invalid_params", undefined, "not_found", "not_found"]
      )
    }))

  it("cannot make a repository of a directory together with others", () =>
    withCalls(async (rig) => {
      const results = await rig.message([
        write("d/objects/x", ""),
        write("d/refs/x", ""),
        write("d/HEAD", "ref: refs/heads/main\n"),
        write("e/HEAD", ""),
        write("e/refs/x", ""),
        write("e/objects/x", "")
      ])
      assert.deepStrictEqual(
        results.map(({ error }) => error?.code),
        [undefined, undefined, "denied", undefined, undefined, "denied"]
      )
      assert.deepStrictEqual(readdirSync(join(rig.workspace.root, "d")).toSorted(), ["objects", "refs"])
    }))
})

describe("a call that others wait for", () => {
  const held = async (use: (rig: CallRig, answer: (approval: "once" | "no") => void) => Promise<void>) =>
    withCalls(async (rig) => {
      const { root } = rig.workspace
      writeFileSync(join(root, "f"), "a\nb\n")
      linkSync(join(root, "f"), join(root, "other name"))
      const { promise, resolve } = Promise.withResolvers<"once" | "no">()
      const first = rig.ask({ ...edit("f", "a", "A"), answer: promise })
      const second = rig.ask({ ...edit("f", "b", "B"), answer: "once" })
      // Another file is not held up while the user is asked about this one.
      done(await rig.message([write("g", "")]))
      assert.strictEqual(file(rig, "f"), "a\nb\n")
      await use(rig, resolve)
      const { error } = await first.answer
      assert.isDefined(error)
      done([await second.answer])
      assert.strictEqual(file(rig, "f"), "a\nB\n")
    })

  it("lets them go on when the user refuses it", () => held(async (_, answer) => answer("no")))

  it("lets them go on when it is cancelled", () => held(async (rig) => rig.cancel("c1")))

  it("lets them go on when it takes too long", () =>
    withCalls(async (rig) => {
      const slow = {
        method: "proc.exec" as const,
        params: { command: "sleep 60", timeout: 1 },
        answer: "once" as const
      }
      const [first, second] = await rig.message([slow, write("f", "x")])
      assert.strictEqual(first?.error?.code, "timeout")
      assert.isTrue(second?.ok)
    }))
})

describe("a call that waits", () => {
  it("is not made once it was cancelled, and those behind it do not wait for it", () =>
    withCalls(async (rig) => {
      const { promise, resolve } = Promise.withResolvers<"once">()
      const first = rig.ask({ ...bash("cat f 2>&1; exit 0"), answer: promise })
      const second = rig.ask(write("f", "never"))
      const third = rig.ask(write("g", "third"))
      rig.cancel(second.callId)
      assert.strictEqual((await second.answer).error?.code, "cancelled")
      assert.isFalse(existsSync(join(rig.workspace.root, "g")))
      resolve("once")
      done([await first.answer, await third.answer])
      assert.isFalse(existsSync(join(rig.workspace.root, "f")))
      assert.strictEqual(file(rig, "g"), "third")
    }))

  it("has not begun for the journal: a client that dies leaves nothing unknown of it", () =>
    withCalls(async (rig) => {
      const { promise, resolve } = Promise.withResolvers<"once">()
      const first = rig.ask({ ...bash("true"), answer: promise })
      const second = rig.ask(write("f", "x"))
      const journal = join(rig.workspace.base, "session", "calls.log")
      const isAsked = Effect.sync(() => readFileSync(journal, "utf8").includes(`"asked"`))
      await Effect.runPromise(eventually("the journal says that the user is asked", isAsked))
      assert.notInclude(readFileSync(journal, "utf8"), second.callId)
      resolve("once")
      done([await first.answer, await second.answer])
      assert.include(readFileSync(journal, "utf8"), second.callId)
    }))
})
