import { parentPort } from "node:worker_threads"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"

/** One text to be counted, and its count. */
export interface CountAsk {
  readonly id: number
  readonly text: string
}

export interface CountAnswer {
  readonly id: number
  readonly tokens: number
}

/** Text that looks like a control token is text here: a caller may write anything. */
const asText = { disallowedSpecial: new Set<string>() }

parentPort?.on("message", ({ id, text }: CountAsk) => {
  const answer: CountAnswer = { id, tokens: countTokens(text, asText) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- between threads there are no origins
  parentPort?.postMessage(answer)
})
