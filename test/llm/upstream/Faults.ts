import {
  done,
  event,
  finishes,
  plainRecording,
  recordedEvents,
  recordedJson,
  recordedUsage,
  says,
  streamOf,
  streamRecording,
  tells
} from "./Recordings.ts"
import { answer, type AskedOf, chunk, openEndedHead, type Step, streamHead } from "./ScriptedUpstream.ts"

/**
 * Every fault of an upstream, each as a script, with the client's expected view and the allowed cost of the call.
 * Source: contract/llm#trying-the-next-model, contract/llm#streams, contract/llm#charging.
 */
export interface Fault {
  /** its model is `fault/<name>` */
  readonly name: string
  readonly plain: Play
  readonly stream: Play
}

export interface Play {
  readonly steps: ReadonlyArray<Step> | (() => ReadonlyArray<Step>)
  readonly sees: Seen
}

/** The answer of a single model to its caller. */
export type Seen =
  /** an error with a status, before anything else; another model can still be tried. Costs nothing */
  | { readonly fails: number; readonly code: string | null; readonly retryAfter?: number }
  /** the recorded answer in full, as if nothing had happened */
  | { readonly answers: "recorded"; readonly charged: Charged }
  /** the beginning of it, then an error chunk. Costs nothing */
  | { readonly breaksOffAfter: string }

/** By the cost that the upstream says, by the tokens that it says, or by those that are counted here. */
export type Charged = "cost" | "tokens" | "counted"

const upstreamFails: Seen = { fails: 502, code: "upstream_error" }
const answersWell: Seen = { answers: "recorded", charged: "cost" }

const error = (code: number, message: string): string => JSON.stringify({ error: { code, message } })

const both = (name: string, steps: ReadonlyArray<Step>, sees: Seen): Fault => ({
  name,
  plain: { steps, sees },
  stream: { steps, sees }
})

const status = (code: number, sees: Seen = upstreamFails, headers = {}): Fault =>
  both(
    `status-${code}${"Retry-After" in headers ? "-retry-after" : ""}`,
    [{ send: refusal(code, headers) }],
    sees
  )

const refusal = (code: number, headers: Readonly<Record<string, string>>): Buffer =>
  answer(code, error(code, `The upstream says ${code}`), headers)

const sends = (...bytes: ReadonlyArray<string | Uint8Array>): ReadonlyArray<Step> =>
  bytes.map((send) => ({ send }))

const whole = (body: string): Play["steps"] => sends(answer(200, body))
const stream = (...events: ReadonlyArray<string>): Play["steps"] => sends(streamOf(events))
const usageWith = (changes: object): object => ({ ...recordedUsage, ...changes })

/** A plain answer and a stream with this usage in place of the recorded one. */
const usage = (name: string, told: object | undefined, charged: Charged): Fault => ({
  name,
  plain: { steps: whole(recordedJson({ usage: told })), sees: { answers: "recorded", charged } },
  stream: {
    steps: stream(...recordedEvents.slice(0, 5), ...(told === undefined ? [] : [tells(told)]), done),
    sees: { answers: "recorded", charged }
  }
})

const limited: Seen = { fails: 429, code: "rate_limit_exceeded" }

const statuses: ReadonlyArray<Fault> = [
  status(400, { fails: 400, code: null }),
  status(401),
  status(402),
  status(403),
  status(404),
  status(408),
  status(429, limited),
  status(429, { ...limited, retryAfter: 7 }, { "Retry-After": "7" }),
  status(500),
  status(502),
  status(503),
  status(529),
  status(302, upstreamFails, { Location: "http://127.0.0.1:1/" }),
  both("status-204", sends("HTTP/1.1 204 No Content\r\n\r\n"), upstreamFails),
  both(
    "context-too-long",
    sends(answer(400, error(400, "This model's maximum context length is 8 tokens"))),
    { fails: 400, code: "context_length_exceeded" }
  )
]

const connections: ReadonlyArray<Fault> = [
  both("closes-at-once", [{ end: "close" }], upstreamFails),
  both("resets-at-once", [{ end: "reset" }], upstreamFails),
  both("says-nothing", [{ silence: true }], upstreamFails),
  both("no-http", [{ send: "SSH-2.0-OpenSSH_9.2\r\n" }, { end: "close" }], upstreamFails),
  both(
    "head-without-end",
    [{ send: `HTTP/1.1 200 OK\r\nX-A: ${"a".repeat(100_000)}` }, { end: "close" }],
    upstreamFails
  ),
  {
    name: "silence-after-200",
    plain: {
      steps: [{ send: plainRecording.subarray(0, plainRecording.length - 40) }, { silence: true }],
      sees: upstreamFails
    },
    stream: { steps: [{ send: streamHead }, { silence: true }], sees: upstreamFails }
  },
  {
    name: "silence-within",
    plain: { steps: [{ send: plainRecording.subarray(0, 30) }, { silence: true }], sees: upstreamFails },
    stream: {
      steps: [{ send: streamHead }, { send: chunk(says("Grüße,")) }, { silence: true }],
      sees: { breaksOffAfter: "Grüße," }
    }
  },
  {
    name: "comments-only",
    plain: { steps: [{ send: plainRecording.subarray(0, 30) }, { silence: true }], sees: upstreamFails },
    stream: {
      steps: () => [
        { send: streamHead },
        ...Array.from({ length: 200 }, () => [
          { send: chunk(": OPENROUTER PROCESSING\n\n") },
          { pauseMillis: 20 }
        ]).flat()
      ],
      sees: upstreamFails
    }
  }
]

const bodies: ReadonlyArray<Fault> = [
  {
    name: "html",
    plain: { steps: whole("<html>Please wait</html>"), sees: upstreamFails },
    stream: { steps: sends(answer(200, "<html>Please wait</html>")), sees: upstreamFails }
  },
  {
    name: "truncated-json",
    plain: { steps: whole(recordedJson().slice(0, -30)), sees: upstreamFails },
    stream: {
      steps: stream(says("Grüße,"), `${says(" 世界").slice(0, -30)}\n\n`, done),
      sees: { breaksOffAfter: "Grüße," }
    }
  },
  {
    name: "error-in-200",
    plain: { steps: whole(error(502, "The provider failed")), sees: upstreamFails },
    stream: {
      steps: stream(event({ error: { code: 502, message: "The provider failed" } })),
      sees: upstreamFails
    }
  },
  {
    name: "rate-limit-in-200",
    plain: { steps: whole(error(429, "Slow down")), sees: limited },
    stream: { steps: stream(event({ error: { code: 429, message: "Slow down" } })), sees: limited }
  },
  {
    name: "error-within",
    plain: { steps: whole(error(500, "It broke")), sees: upstreamFails },
    stream: {
      steps: stream(
        says("Grüße,"),
        event({
          error: {
            code: 502,
            message: "The provider failed",
            metadata: { error_type: "provider_unavailable" }
          },
          choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }]
        })
      ),
      sees: { breaksOffAfter: "Grüße," }
    }
  },
  {
    name: "empty",
    plain: {
      steps: whole(recordedJson({ choices: [{ index: 0, message: { role: "assistant", content: "" } }] })),
      sees: upstreamFails
    },
    stream: { steps: stream(tells(), done), sees: upstreamFails }
  },
  {
    name: "no-choices",
    plain: { steps: whole(recordedJson({ choices: [] })), sees: upstreamFails },
    stream: { steps: stream(done), sees: upstreamFails }
  },
  {
    name: "body-of-100-mb",
    plain: {
      steps: () => hundredMegabytes(`HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n{"a":"`),
      sees: upstreamFails
    },
    stream: { steps: () => hundredMegabytes(`${openEndedHead}data: {"a":"`), sees: upstreamFails }
  },
  {
    name: "error-body-of-100-mb",
    plain: {
      steps: () => hundredMegabytes("HTTP/1.1 500 No\r\nContent-Length: 104857600\r\n\r\n"),
      sees: upstreamFails
    },
    stream: {
      steps: () => hundredMegabytes("HTTP/1.1 500 No\r\nContent-Length: 104857600\r\n\r\n"),
      sees: upstreamFails
    }
  }
]

const megabyte = Buffer.alloc(1024 * 1024, "x")

const hundredMegabytes = (begin: string): ReadonlyArray<Step> => [
  { send: begin },
  ...Array.from({ length: 100 }, () => ({ send: megabyte }))
]

/** Cuts the events in the middle of the second letter of "世". */
const cutInCharacter = (): ReadonlyArray<Step> => {
  const bytes = Buffer.from(says("Grüße,") + says(" 世界"))
  const at = bytes.indexOf(Buffer.from("世")) + 1
  return [{ send: openEndedHead }, { send: bytes.subarray(0, at) }, { end: "close" }]
}

const whole200 = { steps: sends(plainRecording), sees: answersWell }

/** Oddities that streams may have, which the client must not notice. */
const streams: ReadonlyArray<Fault> = [
  { name: "nothing", plain: whole200, stream: { steps: sends(streamRecording), sees: answersWell } },
  {
    name: "cut-in-a-character",
    plain: {
      steps: [
        { send: plainRecording.subarray(0, plainRecording.indexOf(Buffer.from("世")) + 1) },
        { end: "close" }
      ],
      sees: upstreamFails
    },
    stream: { steps: cutInCharacter, sees: { breaksOffAfter: "Grüße," } }
  },
  {
    name: "pieces-of-a-character",
    plain: { steps: () => byteByByte(plainRecording), sees: answersWell },
    stream: { steps: () => byteByByte(streamRecording), sees: answersWell }
  },
  {
    name: "no-done",
    plain: whole200,
    stream: { steps: stream(...recordedEvents.slice(0, -1)), sees: answersWell }
  },
  {
    name: "no-done-and-no-last-blank-line",
    plain: whole200,
    stream: { steps: stream(...recordedEvents.slice(0, 5), tells().trimEnd()), sees: answersWell }
  },
  {
    name: "ends-with-its-connection",
    plain: whole200,
    stream: {
      steps: [{ send: openEndedHead + recordedEvents.join("") }, { end: "close" }],
      sees: answersWell
    }
  },
  {
    name: "resets-after-done",
    plain: whole200,
    stream: {
      steps: [{ send: openEndedHead + recordedEvents.join("") }, { pauseMillis: 30 }, { end: "reset" }],
      sees: answersWell
    }
  },
  {
    name: "crlf",
    plain: whole200,
    stream: { steps: stream(...recordedEvents.map((one) => one.replaceAll("\n", "\r\n"))), sees: answersWell }
  },
  {
    name: "comments",
    plain: whole200,
    stream: {
      steps: stream(": OPENROUTER PROCESSING\n\n", ...recordedEvents.flatMap((one) => [": busy\n\n", one])),
      sees: answersWell
    }
  },
  {
    name: "no-space-behind-data",
    plain: whole200,
    stream: {
      steps: stream(...recordedEvents.map((one) => one.replace("data: ", "data:"))),
      sees: answersWell
    }
  },
  {
    name: "usage-on-a-chunk-with-choices",
    plain: whole200,
    stream: {
      steps: stream(...recordedEvents.slice(1, 4), finishes("stop", { usage: recordedUsage }), done),
      sees: answersWell
    }
  },
  {
    name: "usage-on-a-chunk-with-content",
    plain: whole200,
    stream: {
      steps: stream(...recordedEvents.slice(1, 3), says(" 👋!", { usage: recordedUsage }), finishes(), done),
      sees: answersWell
    }
  },
  {
    name: "usage-on-every-chunk",
    plain: whole200,
    stream: {
      steps: stream(
        says("Grüße,", { usage: usageWith({ completion_tokens: 1, cost: 0.000001 }) }),
        says(" 世界", { usage: usageWith({ completion_tokens: 2, cost: 0.000002 }) }),
        says(" 👋!", { usage: recordedUsage }),
        finishes(),
        done
      ),
      sees: answersWell
    }
  }
]

const byteByByte = (bytes: Buffer): ReadonlyArray<Step> =>
  Array.from(bytes, (_, at) => [
    { send: bytes.subarray(at, at + 1) },
    ...(at % 16 === 0 ? [{ pauseMillis: 1 }] : [])
  ]).flat()

const { cost: _, ...withoutCost } = recordedUsage

/** Usage that is missing, or cannot be true. */
const usages: ReadonlyArray<Fault> = [
  usage("no-usage", undefined, "counted"),
  usage("usage-without-cost", withoutCost, "tokens"),
  usage("usage-is-no-object", Object.assign([], { length: 0 }), "counted"),
  usage("usage-negative", usageWith({ completion_tokens: -5, cost: undefined }), "counted"),
  usage("usage-fractional", usageWith({ prompt_tokens: 1.5, cost: undefined }), "counted"),
  usage("usage-text", usageWith({ prompt_tokens: "9", cost: undefined }), "counted"),
  usage("usage-absurd", usageWith({ completion_tokens: 1e15, cost: undefined }), "counted"),
  usage("usage-of-a-billion", usageWith({ completion_tokens: 900_000_000, cost: undefined }), "counted"),
  usage("cost-negative", usageWith({ cost: -1 }), "tokens"),
  usage("cost-text", usageWith({ cost: "0.5" }), "tokens"),
  usage("cost-of-a-fortune", usageWith({ cost: 1_000 }), "tokens")
]

export const faults: ReadonlyArray<Fault> = [...statuses, ...connections, ...bodies, ...streams, ...usages]

/** The fault's course when it is asked. */
export const playOf =
  (fault: Fault) =>
  ({ body }: AskedOf): ReadonlyArray<Step> => {
    const { steps } = /"stream"\s*:\s*true/.test(body) ? fault.stream : fault.plain
    return typeof steps === "function" ? steps() : steps
  }
