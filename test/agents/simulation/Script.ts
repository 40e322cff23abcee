import { Effect } from "effect"
import type { ModelAnswer, ModelAsk } from "#actors/agents/ModelCalls.ts"
import type { ContentPart } from "#schemas/agents/ServerFrame.ts"

/** One answer of the scripted model: its text, and its calls. */
export interface Turn {
  readonly words: ReadonlyArray<string>
  readonly calls: ReadonlyArray<{ readonly tool: string; readonly args: Readonly<Record<string, unknown>> }>
}

/** Reads, writes and commands, alone and together, with text between. */
export const script: ReadonlyArray<Turn> = [
  { words: ["I ", "look."], calls: [{ tool: "read", args: { path: "a.txt" } }] },
  {
    words: ["Now ", "three ", "together."],
    calls: [
      { tool: "bash", args: { command: "make one" } },
      { tool: "grep", args: { pattern: "x" } },
      { tool: "edit", args: { path: "a.txt", edits: [{ oldText: "a", newText: "b" }] } }
    ]
  },
  { words: ["And ", "one ", "more."], calls: [{ tool: "bash", args: { command: "make two" } }] },
  { words: ["That ", "is ", "all."], calls: [] }
]

const tick = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

/** The answer is derived from the conversation, so that a repeated call gets the same. */
export const answerOf = (turns: ReadonlyArray<Turn>, ask: ModelAsk): Effect.Effect<ModelAnswer> =>
  Effect.gen(function* () {
    const turn = turns[ask.messages.filter(({ role }) => role === "assistant").length]
    if (turn === undefined) return yield* Effect.die(new Error("The model was asked too often"))
    for (const word of turn.words) {
      yield* tick
      ask.onDelta("text_delta", 0, word)
    }
    yield* tick
    const content: Array<ContentPart> = [{ type: "text", text: turn.words.join("") }]
    for (const [index, { args, tool }] of turn.calls.entries())
      content.push({ type: "tool_call", callId: ask.callId(index), tool, args })
    return {
      _tag: "Answered",
      isCutByCredits: false,
      said: {
        model: ask.model,
        content,
        stopReason: turn.calls.length > 0 ? "tool_calls" : "stop",
        usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 },
        cost: 7n,
        covered: false
      }
    }
  })
