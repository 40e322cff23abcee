import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ToolResult } from "#schemas/agents/ClientFrame.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { type CallRig, type MadeCall, withCalls } from "./CallRig.ts"
import { type Answer, type FileCall, SequentialFiles } from "./SequentialFiles.ts"

const names = ["a", "b", "c", "new"]
const words = ["one", "two", "six", "ten"]
const textOf = (random: SeededRandom): string =>
  Array.from({ length: 1 + random.below(4) }, () => `${words[random.below(4)]} ${random.below(3)}\n`).join("")

const pick = <A>(random: SeededRandom, from: readonly [A, ...Array<A>] | ReadonlyArray<A>): A => {
  const one = from[random.below(from.length)]
  assert.isDefined(one)
  return one
}

const callOf = (random: SeededRandom): FileCall => {
  const file = pick(random, names)
  const kind = pick(random, [
    "write",
    "edit",
    "edit",
    "edit",
    "edit",
    "read",
    "read",
    "list",
    "grep",
    "append",
    "move"
  ])
  // A search is a thread and a command a process: each a tenth of the calls would be most of the time.
  if (kind === "grep" && random.chance(0.1)) return { kind, word: pick(random, words) }
  if (kind === "append" && random.chance(0.3)) return { kind, file, content: textOf(random) }
  if (kind === "move" && random.chance(0.2))
    return {
      kind,
      file,
      to: pick(
        random,
        names.filter((name) => name !== file)
      )
    }
  if (kind === "write") return { kind, file, content: textOf(random) }
  if (kind === "read") return { kind, file }
  if (kind === "list") return { kind }
  return {
    kind: "edit",
    file,
    oldText: `${pick(random, words)} ${random.below(3)}\n`,
    newText: textOf(random)
  }
}

/** One of the ways to write the path of a file in `dir`. */
const spelled = (random: SeededRandom, root: string, file: string): string =>
  pick(random, [
    `dir/${file}`,
    `./dir//${file}`,
    `dir/../dir/${file}`,
    join(root, "dir", file),
    `link/${file}`,
    `dir/deep/up/${file}`,
    `to-${file}`,
    `link/deep/../../to-${file}`
  ])

const madeOf = (random: SeededRandom, root: string, call: FileCall, answer: MadeCall["answer"]): MadeCall => {
  const path = "file" in call ? spelled(random, root, call.file) : pick(random, ["dir", "link", "./dir/"])
  switch (call.kind) {
    case "write":
      return { method: "fs.write", params: { path, content: call.content }, answer }
    case "edit":
      return {
        method: "fs.edit",
        params: { path, edits: [{ oldText: call.oldText, newText: call.newText }] },
        answer
      }
    case "read":
      return { method: "fs.read", params: { path } }
    case "list":
      return { method: "fs.list", params: { path } }
    case "grep":
      return { method: "fs.grep", params: { path, pattern: call.word, literal: true } }
    case "append":
      return {
        method: "proc.exec",
        params: { command: `printf %s '${call.content}' >> ${path}; cat ${path}` },
        answer: "once"
      }
    case "move":
      return {
        method: "proc.exec",
        params: {
          command: `cd dir; [ ! ${call.file} -ef ${call.to} ] && mv -f ${call.file} ${call.to} 2> /dev/null && echo yes || echo no`
        },
        answer: "once"
      }
  }
}

const inDirectory = new Set(["deep"])

/** The contract's part of an answer: messages are for people. */
const told = ({ error, result }: ToolResult): Answer =>
  error === undefined ? { result: within(result) } : { code: error.code }

/** Paths as the model has them: names in `dir`. */
const within = (result: unknown): unknown => {
  const { diff, entries, matches, ...rest } = result as {
    readonly diff?: string
    readonly entries?: ReadonlyArray<string>
    readonly matches?: ReadonlyArray<string>
  }
  return {
    ...rest,
    ...(diff !== undefined && { diff: diff.replace("--- a/dir/", "--- a/").replace("+++ b/dir/", "+++ b/") }),
    ...(entries && { entries: entries.filter((name) => name !== "deep/") }),
    ...(matches && { matches: matches.map((match) => match.replace(/^dir\//, "")) })
  }
}

const lay = ({ workspace: { root } }: CallRig, random: SeededRandom): SequentialFiles => {
  const directory = join(root, "dir")
  mkdirSync(join(directory, "deep"), { recursive: true })
  symlinkSync("dir", join(root, "link"))
  symlinkSync("..", join(directory, "deep/up"))
  for (const name of names) symlinkSync(join("link", name), join(root, `to-${name}`))
  const files = new Map(["a", "b"].map((name) => [name, textOf(random)] as const))
  for (const [name, text] of files) writeFileSync(join(directory, name), text)
  const links = new Map(random.chance(0.5) ? [["c", "a"] as const] : [])
  for (const [name, of] of links) linkSync(join(directory, of), join(directory, name))
  return new SequentialFiles(files, links)
}

const filesOf = (root: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(join(root, "dir"))
      .filter((name) => !inDirectory.has(name))
      .toSorted()
      .map((name) => [name, readFileSync(join(root, "dir", name), "utf8")])
  )

/** Asks for everything without waiting for answers, as frames may come: in one turn, or some later. */
const play = async (rig: CallRig, random: SeededRandom): Promise<void> => {
  const model = lay(rig, random)
  const { root } = rig.workspace
  const expected: Array<Answer> = []
  const given: Array<Promise<ToolResult>> = []
  const calls: Array<FileCall> = []
  for (let left = 2 + random.below(9); left > 0; left--) {
    const call = callOf(random)
    const approval = random.chance(0.8) ? ("once" as const) : ("no" as const)
    const late = random.below(4)
    const answer = late === 0 ? sleep(random.below(3)).then(() => approval) : approval
    const isCancelled = random.chance(0.05)
    const { answer: result, callId } = rig.ask(madeOf(random, root, call, answer))
    if (isCancelled) rig.cancel(callId)
    expected.push(isCancelled ? { code: "cancelled" } : model.make(call, approval))
    calls.push(call)
    given.push(result)
    if (random.chance(0.1)) await turn()
    if (random.chance(0.05)) await sleep(1)
  }
  const answers = await Promise.all(given)
  assert.deepStrictEqual(answers.map(told), expected, JSON.stringify(calls))
  assert.deepStrictEqual(filesOf(root), model.texts, JSON.stringify(calls))
}

/** Plays so many sequences; `SIMULATION_RUNS=10000` plays as many, `SIMULATION_SEED=…` one alone. */
export const itPlays = (sequences: number): void =>
  it.effect(
    "calls that come together leave the files, and are answered, as one after the other in source order",
    () => forSeeds(sequences, (random) => Effect.promise(() => withCalls((rig) => play(rig, random)))),
    36_000_000
  )
