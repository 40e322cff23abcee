import { answer, chunk, lastChunk, streamHead } from "./ScriptedUpstream.ts"

/** Answers as an OpenRouter-shaped upstream sends them, small and written by hand. */

/** Tokens and cost of every recording: 9 and 4 of them, 0.00001234 USD. */
export const recordedUsage = {
  prompt_tokens: 9,
  completion_tokens: 4,
  total_tokens: 13,
  cost: 0.00001234,
  prompt_tokens_details: { cached_tokens: 0 }
}

export const recordedText = "Grüße, 世界 👋!"

const named = { id: "gen-1", model: "recorded", created: 1_767_225_600 }

export const recordedJson = (changes: object = {}): string =>
  JSON.stringify({
    ...named,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: recordedText }, finish_reason: "stop" }],
    usage: recordedUsage,
    ...changes
  })

/** One event of a stream, as it is on the wire. */
export const event = (fields: object): string =>
  `data: ${JSON.stringify({ ...named, object: "chat.completion.chunk", ...fields })}\n\n`

export const says = (content: string, more: object = {}): string =>
  event({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more })

export const finishes = (reason = "stop", more: object = {}): string =>
  event({ choices: [{ index: 0, delta: {}, finish_reason: reason }], ...more })

export const tells = (usage: object = recordedUsage): string => event({ choices: [], usage })

export const done = "data: [DONE]\n\n"

/** The text of a whole recorded stream, one piece an event. */
export const recordedPieces = ["Grüße,", " 世界", " 👋!"]

export const recordedEvents: ReadonlyArray<string> = [
  event({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] }),
  ...recordedPieces.map((piece) => says(piece)),
  finishes(),
  tells(),
  done
]

/** A chunked stream of these events, each in a chunk of its own. */
export const streamOf = (events: ReadonlyArray<string>): Buffer =>
  Buffer.concat([Buffer.from(streamHead), ...events.map((one) => chunk(one)), Buffer.from(lastChunk)])

/** The bytes of whole answers, as they come over the wire. */
export const plainRecording: Buffer = answer(200, recordedJson())
export const streamRecording: Buffer = streamOf(recordedEvents)

const callsTool = (index: number, fields: object): string =>
  event({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...fields }] }, finish_reason: null }] })

/** Streams of other kinds, and answers that are no success. */
export const otherRecordings: Readonly<Record<string, { readonly bytes: Buffer; readonly stream: boolean }>> =
  {
    "a stream with CRLF and comments": {
      bytes: streamOf([": hello\n\n", ...recordedEvents].map((one) => one.replaceAll("\n", "\r\n"))),
      stream: true
    },
    "a stream that calls a tool": {
      bytes: streamOf([
        callsTool(0, { id: "call_1", type: "function", function: { name: "weather", arguments: "" } }),
        callsTool(0, { function: { arguments: '{"city":"Köln"}' } }),
        finishes("tool_calls"),
        tells(),
        done
      ]),
      stream: true
    },
    "a stream that thinks first": {
      bytes: streamOf([
        event({ choices: [{ index: 0, delta: { reasoning: "Hm, 世界" }, finish_reason: null }] }),
        says("Ja."),
        finishes("stop", { usage: recordedUsage }),
        done
      ]),
      stream: true
    },
    "a stream with an error in it": {
      bytes: streamOf([
        says("Grüße,"),
        event({
          error: { code: 502, message: "Überlastet" },
          choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }]
        })
      ]),
      stream: true
    },
    "a rate limit": {
      bytes: answer(429, JSON.stringify({ error: { code: 429, message: "Langsamer, bitte: 世界" } }), {
        "Retry-After": "3"
      }),
      stream: false
    }
  }
