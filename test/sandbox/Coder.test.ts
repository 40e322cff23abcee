import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { sandboxModels } from "#src/sandbox/SandboxModels.ts"
import { syntax } from "#src/sandbox/coder/PlanStep.ts"
import { readPlan } from "#src/sandbox/coder/CodingPlan.ts"
import { summaryPrompt, summaryRequest } from "#streams/agents/Prompts.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { asMessage, converse, type Message, shown, speak, user } from "./CoderTalk.ts"
import { type SandboxClient, startSandbox } from "./SandboxClient.ts"
import { writtenDown } from "./WrittenDown.ts"

let sandbox: SandboxClient
beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox.close())

const plan = (...lines: ReadonlyArray<string>): ReadonlyArray<Message> => [user(lines.join("\n"))]

const lastOf = <A>(list: ReadonlyArray<A>): A => list.at(-1) ?? assert.fail("nothing was said")

describe("a plan of sandbox/coder", () => {
  it("is carried out step by step, with the tools' own arguments", async () => {
    const { spoken } = await converse(
      sandbox,
      plan(
        "read src/add.mjs",
        'edit src/add.mjs: "a - b" => "a + b", "x\\n" => ""',
        'write "my notes.txt": "one\\n\\"two\\" \\\\ \\u00fc"',
        "ls",
        "ls src",
        "find **/*.mjs src",
        'grep "a pattern" src',
        "run node --test && echo 'fine'",
        "run (5 s) sleep 60",
        'commit "Fix Ada\'s add"',
        'call grep {"pattern":"a","literal":true}',
        "say Done, the tests pass."
      )
    )
    assert.deepStrictEqual(spoken.flatMap(shown), [
      ["read", { path: "src/add.mjs" }],
      [
        "edit",
        {
          path: "src/add.mjs",
          edits: [
            { oldText: "a - b", newText: "a + b" },
            { oldText: "x\n", newText: "" }
          ]
        }
      ],
      ["write", { path: "my notes.txt", content: 'one\n"two" \\ ü' }],
      ["ls", {}],
      ["ls", { path: "src" }],
      ["find", { pattern: "**/*.mjs", path: "src" }],
      ["grep", { pattern: "a pattern", path: "src" }],
      ["bash", { command: "node --test && echo 'fine'" }],
      ["bash", { command: "sleep 60", timeout: 5 }],
      ["bash", { command: String.raw`git add -A && git commit -m 'Fix Ada'\''s add'` }],
      ["grep", { pattern: "a", literal: true }]
    ])
    const end = lastOf(spoken)
    assert.deepStrictEqual([end.content, end.finishReason], ["Done, the tests pass.", "stop"])
    const ids = spoken.flatMap(({ calls }) => calls.map(({ id }) => id))
    assert.deepStrictEqual(
      ids,
      ids.map((_, index) => `call_${index + 1}`)
    )
  })

  it("thinks, speaks and calls in one message, and several calls where they are joined", async () => {
    const [first, second] = (
      await converse(
        sandbox,
        plan("think Let me see.", "say I look.", "read a.txt", "& read b.txt", "& ls", "words 7")
      )
    ).spoken
    assert.deepStrictEqual(
      [first?.reasoning, first?.content, first?.finishReason],
      ["Let me see.", "I look.", "tool_calls"]
    )
    assert.deepStrictEqual(
      first?.calls.map(({ id }) => id),
      ["call_1", "call_2", "call_3"]
    )
    assert.isAbove(first?.argumentDeltas ?? 0, 5)
    assert.strictEqual(second?.content.split(" ").length, 7)
  })

  it("says the same in a plain answer as in a stream", async () => {
    const messages = plan("think Hm.", "say I look.", "read a.txt", "& ls")
    const streamed = await speak(sandbox, messages)
    const { raw } = await speak(sandbox, messages, { stream: false })
    const { choices, usage } = JSON.parse(raw)
    const { content, reasoning, tool_calls: calls } = choices[0].message
    assert.deepStrictEqual([content, reasoning, choices[0].finish_reason], ["I look.", "Hm.", "tool_calls"])
    assert.deepStrictEqual(
      calls,
      streamed.calls.map((call, index) => ({ index, ...call }))
    )
    assert.strictEqual(usage.completion_tokens, streamed.completionTokens)
  })

  it("answers a call that is made again as it did the first time", async () => {
    const { messages } = await converse(sandbox, plan("read a", "say So.", "ls", "& ls b", "say Done."))
    for (let length = 1; length <= messages.length; length++) {
      const begun = messages.slice(0, length)
      if (begun.at(-1)?.role === "assistant") continue
      assert.strictEqual((await speak(sandbox, begun)).raw, (await speak(sandbox, begun)).raw)
    }
  })

  it("goes on after calls that fail, says how many did, and shows the last result when asked", async () => {
    const failing = (name: string) => (name === "read" ? "Error (not_found): there is no a" : "fine")
    const { spoken } = await converse(sandbox, plan("read a", "ls"), failing)
    assert.strictEqual(lastOf(spoken).content, "The plan is done: 2 calls. 1 of them failed.")
    const showing = await converse(sandbox, plan("read a", "show"), failing)
    assert.strictEqual(lastOf(showing.spoken).content, "Error (not_found): there is no a")
  })

  it("ends at the first failure where it says so", async () => {
    const { spoken } = await converse(sandbox, plan("stop on error", "run make", "ls"), () => "exit code 2")
    assert.strictEqual(spoken.length, 2)
    assert.include(
      lastOf(spoken).content,
      'I stopped, as the plan wants on an error: bash gave "exit code 2"'
    )
  })

  it("may come after other words and a line plan:, and its faulty line is named", async () => {
    const { spoken } = await converse(sandbox, plan("Please do this", "plan:", "```", "ls", "```"))
    assert.deepStrictEqual(spoken.flatMap(shown), [["ls", {}]])
    for (const faulty of [plan("ls", 'edit a: "x" -> "y"'), plan("plan:", 'edit a: "x" -> "y"')]) {
      const { calls, content } = await speak(sandbox, faulty)
      assert.strictEqual(calls.length, 0)
      assert.include(content, 'edit a: "x" -> "y"')
    }
  })

  it("is not seen in plain English", () => {
    for (const words of ["run the tests", "Read it", "fix the bug in add.mjs", "read the README", "", "hi"]) {
      assert.strictEqual(readPlan(words).kind, "words", words)
    }
  })
})

describe("what a person says while sandbox/coder works", () => {
  const steered = async (text: string) => {
    const begun = plan("read a", "read b", "say Done.")
    const first = await speak(sandbox, begun)
    const result = { role: "tool", tool_call_id: "call_1", content: "fine" }
    return converse(sandbox, [...begun, asMessage(first), result, user(text)])
  }

  it("takes over where it is a plan, with ids of calls that go on", async () => {
    const { spoken } = await steered("ls\nsay Instead.")
    assert.deepStrictEqual(spoken.flatMap(shown), [["ls", {}]])
    assert.strictEqual(spoken[0]?.calls[0]?.id, "call_2")
    assert.strictEqual(lastOf(spoken).content, "Instead.")
  })

  it("is acknowledged at the end where it is none", async () => {
    const { spoken } = await steered("Be quick")
    assert.deepStrictEqual(spoken.flatMap(shown), [["read", { path: "b" }]])
    assert.match(lastOf(spoken).content, /^Done\.\nYou also said: "Be quick"\./)
  })

  it("starts another plan when the first is done", async () => {
    const { messages } = await converse(sandbox, plan("read a"))
    const { spoken } = await converse(sandbox, [...messages, user("ls")])
    assert.deepStrictEqual(spoken[0]?.calls[0]?.id, "call_2")
    assert.strictEqual(lastOf(spoken).content, "The plan is done: 1 call.")
  })
})

describe("sandbox/coder without a plan", () => {
  it("looks around, then says what it is, what it saw, and how a plan is written", async () => {
    const workspace = (name: string) =>
      name === "ls" ? "README.md\npackage.json\nsrc/" : "# Rocket\n\nFlies to the moon.\n"
    const { messages, spoken } = await converse(sandbox, plan("Fix the bug, please"), workspace)
    assert.deepStrictEqual(spoken.flatMap(shown), [
      ["ls", {}],
      ["read", { path: "README.md" }]
    ])
    const { content } = lastOf(spoken)
    for (const part of ["no language model", "Fix the bug, please", "src/", "Flies to the moon.", syntax]) {
      assert.include(content, part)
    }
    const later = await speak(sandbox, [...messages, user("And now?")])
    assert.deepStrictEqual([later.calls.length, later.content.includes("And now?")], [0, true])
  })

  it("gives an example that is a plan", async () => {
    const { content } = await speak(sandbox, plan("hi"), { tools: [] })
    const [, example = ""] = /Try this one:\n\n(```.*?```)/su.exec(content) ?? []
    const reading = readPlan(example)
    assert.strictEqual(reading.kind === "plan" ? reading.plan.lines.length : 0, 3)
  })

  it("has its syntax in the README", () => {
    assert.include(readFileSync(join(import.meta.dirname, "../../README.md"), "utf8"), syntax)
  })

  it("finds nothing in an empty workspace, and says what a refusal said", async () => {
    assert.include(lastOf((await converse(sandbox, plan("hi"), () => "")).spoken).content, "is empty")
    const refused = await converse(sandbox, plan("hi"), () => "Error (denied): no")
    assert.include(lastOf(refused.spoken).content, "Error (denied): no")
  })

  it("only says its next step where there are no tools", async () => {
    const { calls, content } = await speak(sandbox, plan("read a"), { tools: [] })
    assert.deepStrictEqual([calls.length, content.includes('read {"path":"a"}')], [0, true])
  })
})

describe("a message of sandbox/coder that goes wrong on purpose", () => {
  it("fails as often as the plan wants, or always", async () => {
    const statuses = async (...lines: ReadonlyArray<string>) => {
      const answers: Array<number> = []
      for (let tries = 0; tries < 4; tries++) answers.push((await speak(sandbox, plan(...lines))).status)
      return answers
    }
    assert.deepStrictEqual(await statuses("fail 503 2 times", "ls"), [503, 503, 200, 200])
    assert.deepStrictEqual(await statuses("fail 429", "ls"), [429, 429, 429, 429])
  })

  it("breaks off in the middle of its arguments", async () => {
    const messages = plan("break 1 time", "say I write.", `write a: "${"x".repeat(200)}"`)
    const broken = await speak(sandbox, messages)
    assert.deepStrictEqual([broken.content, broken.finishReason], ["I write.", "error"])
    assert.throws(() => shown(broken))
    assert.strictEqual((await speak(sandbox, messages)).finishReason, "tool_calls")
    assert.strictEqual((await speak(sandbox, plan("break", "ls"), { stream: false })).status, 502)
  })

  it("is cut at its length by the plan or by max_tokens, in the middle of its arguments", async () => {
    const byPlan = await speak(sandbox, plan("length", "say I list.", "ls a"))
    const byCaller = await speak(sandbox, plan("say I list.", "ls a"), { max_tokens: 3 })
    for (const cut of [byPlan, byCaller]) {
      assert.deepStrictEqual([cut.content, cut.finishReason], ["I list.", "length"])
      assert.throws(() => shown(cut))
    }
    assert.strictEqual(byCaller.completionTokens, 3)
    const text = await speak(sandbox, plan("length", "words 10"))
    assert.deepStrictEqual([text.content.split(" ").length, text.finishReason], [5, "length"])
    const { spoken } = await converse(sandbox, [
      ...plan("length", "ls a", "ls b"),
      asMessage(byPlan),
      { role: "tool", tool_call_id: "call_1", content: "Error: the arguments were cut off" }
    ])
    assert.deepStrictEqual(spoken.flatMap(shown), [["ls", { path: "b" }]])
  })

  it("waits before every piece from there on", async () => {
    const messages = plan("wait 20", "words 5")
    const askedAt = performance.timeOrigin + performance.now()
    const stamped = (await speak(sandbox, messages, { sandbox: { stamp: true } })).raw
    const sentAt = Array.from(stamped.matchAll(/"sent_at":([\d.]+)/g), ([, at]) => Number(at))
    assert.strictEqual(sentAt.length, 5)
    // A timer is never early by more than its own rounding; late it may be, and the next one then sooner behind it.
    assert.isAtLeast((sentAt.at(-1) ?? 0) - askedAt, 5 * 20 - 10)
  })
})

const steps = [
  "read a",
  "& ls",
  "say Going on.",
  'write b: "1\\n2"',
  "think Hm.",
  "run make",
  "words 3",
  "& grep x"
]

const someLines = (random: SeededRandom): ReadonlyArray<string> => [
  "ls",
  ...Array.from({ length: random.below(12) }, () => steps[random.below(steps.length)] ?? "ls")
]

const asking = [{ role: "system", content: "Summarize the conversation for the one who goes on with it." }]

/** A request for a summary: the conversation goes before it, or stands in it. */
type Asking = (messages: ReadonlyArray<Message>) => ReadonlyArray<Message>

const after: Asking = (messages) => [...asking, ...messages, user("Now the summary.")]

const within: Asking = (messages) => [
  { role: "system", content: summaryPrompt },
  user(summaryRequest(writtenDown(messages), "Keep it short"))
]

const summaryOf = async (messages: ReadonlyArray<Message>, asked: Asking = after): Promise<Message> => {
  const { content } = await speak(sandbox, asked(messages), { tools: [] })
  return user(`What came before, in short:\n\n${content}\n\nGo on from here.`)
}

/** Every message that follows a summary is the one that was said without it. */
const cutAnywhere = async (random: SeededRandom, asked: Asking): Promise<void> => {
  const lines = someLines(random)
  const before = await converse(sandbox, plan("ls", "& ls"))
  const whole = await converse(sandbox, [...before.messages, ...plan(...lines)])
  let messages = whole.messages
  for (let cuts = 0; cuts < 2; cuts++) {
    const places = messages.flatMap(({ role }, index) => (index === 0 || role === "tool" ? [] : [index]))
    const cut = places[random.below(places.length)] ?? assert.fail("there is nothing to cut")
    messages = [await summaryOf(messages.slice(0, cut), asked), ...messages.slice(cut)]
    for (const [index, message] of messages.entries()) {
      if (message.role !== "assistant") continue
      const said = asMessage(await speak(sandbox, messages.slice(0, index)))
      assert.deepStrictEqual(said, message, lines.join("\n"))
    }
  }
}

describe("a summary by sandbox/coder", () => {
  it.effect("lets a plan go on as if nothing was left out, wherever the conversation is cut", () =>
    forSeeds(8, (random) => Effect.tryPromise({ try: () => cutAnywhere(random, after), catch: String }))
  )

  it.effect("does so too where an agent of the server writes the conversation down for it", () =>
    forSeeds(8, (random) => Effect.tryPromise({ try: () => cutAnywhere(random, within), catch: String }))
  )

  it("keeps what the person said and has no answer yet", async () => {
    const begun = [...plan("read a", "say Done."), user("Be quick")]
    const { spoken } = await converse(sandbox, [await summaryOf(begun)])
    assert.deepStrictEqual(spoken.flatMap(shown), [["read", { path: "a" }]])
    assert.include(lastOf(spoken).content, 'You also said: "Be quick"')
  })

  it("says that nothing is under way where nothing is", async () => {
    const { messages } = await converse(sandbox, plan("read a"))
    const { spoken } = await converse(sandbox, [await summaryOf(messages), user("And now?")])
    assert.deepStrictEqual(
      spoken.map(({ calls }) => calls.length),
      [0]
    )
  })
})

it("is the first of the sandbox's models that calls tools", () => {
  assert.strictEqual(sandboxModels.find(({ callsTools }) => callsTools)?.id, "sandbox/coder")
})
