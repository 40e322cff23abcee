import type { Usage } from "../ChatClient.ts"
import { done, event, finishes, says, streamOf, tells } from "../upstream/Recordings.ts"
import { answer, type AskedOf, type Script, type Step } from "../upstream/ScriptedUpstream.ts"

/** The models' answers, in both ways of asking. */

export const isStreamed = ({ body }: AskedOf): boolean => /"stream"\s*:\s*true/.test(body)

export const tokens = (prompt: number, completion: number): Usage => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion
})

/** Pico-USD of tokens at the prices of scripted models with the markup of 2 %. */
export const priceOf = (prompt: number, completion: number): bigint =>
  BigInt(prompt) * 1_020_000n + BigInt(completion) * 2_040_000n

export interface Said {
  /** of the reported usage; undefined: none is reported */
  readonly usage?: object | undefined
  readonly finish?: string
}

export const plainSteps = (text: string, { finish = "stop", usage }: Said): ReadonlyArray<Step> => {
  const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: finish }]
  return [{ send: answer(200, JSON.stringify({ id: "gen-2", object: "chat.completion", choices, usage })) }]
}

/** A word an event. */
export const streamEvents = (text: string, { finish = "stop", usage }: Said): ReadonlyArray<string> => [
  ...(text.match(/\S+\s*/g) ?? []).map((word) => says(word)),
  finishes(finish),
  ...(usage === undefined ? [] : [tells(usage)]),
  done
]

/** Answers well, in either form. */
export const answersWith =
  (text: string, said: Said): Script =>
  (asked) =>
    isStreamed(asked) ? [{ send: streamOf(streamEvents(text, said)) }] : plainSteps(text, said)

/** Neither content nor a reason for there being none. */
export const saysNothing: Script = (asked) =>
  isStreamed(asked)
    ? [{ send: streamOf([done]) }]
    : [{ send: answer(200, JSON.stringify({ object: "chat.completion", choices: [] })) }]

/** An error status, as OpenRouter words it. */
export const refuses =
  (status: number, message: string, headers: Readonly<Record<string, string>> = {}): Script =>
  () => [{ send: answer(status, JSON.stringify({ error: { code: status, message } }), headers) }]

/** A stream that begins well and breaks off with an error. */
export const breaksOff =
  (text: string): Script =>
  () => [{ send: streamOf([says(text), event({ error: { code: 502, message: "The provider died" } })]) }]
