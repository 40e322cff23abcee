import { setTimeout as pause } from "node:timers/promises"
import type { UwsResponse } from "#src/front/uws/Addon.ts"
import {
  type Account,
  completionPrice,
  completionsPath,
  isModelName,
  type ModelName,
  nowMicros,
  promptPrice,
  promptTokens,
  type Shape,
  shapes,
  stampDigits,
  stampMark
} from "./Answers.ts"
import { bodyOf, serveForked } from "#bench/harness/ForkedServer.ts"

/**
 * An upstream that costs next to nothing: uWebSockets.js alone, in a process of its own. It stamps every piece of content
 * with the time at which it leaves, and counts what it has served. `GET /account` says so.
 */

const account = { requests: 0, promptTokens: 0, completionTokens: 0, left: 0, open: 0 } satisfies Account

const served = ({ chunks }: Shape): void => {
  account.requests++
  account.promptTokens += promptTokens
  account.completionTokens += chunks
}

const usageOf = ({ chunks }: Shape): object => ({
  prompt_tokens: promptTokens,
  completion_tokens: chunks,
  total_tokens: promptTokens + chunks
})

const plainAnswer = (model: ModelName): string =>
  JSON.stringify({
    id: "gen-bench",
    object: "chat.completion",
    created: 1_767_225_600,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "The driver slows down. ".repeat(10) },
        finish_reason: "stop"
      }
    ],
    usage: usageOf(shapes[model])
  })

const answers = new Map<string, string>()

const answerWhole = (response: UwsResponse, model: ModelName): void => {
  const body = answers.get(model) ?? plainAnswer(model)
  answers.set(model, body)
  served(shapes[model])
  response.cork(() => response.writeHeader("Content-Type", "application/json").end(body))
}

const event = (model: ModelName, fields: object): string => {
  const { paddingBytes } = shapes[model]
  const padding = paddingBytes === 0 ? {} : { padding: "x".repeat(paddingBytes) }
  const head = { id: "gen-bench", object: "chat.completion.chunk", created: 1_767_225_600, model }
  return `data: ${JSON.stringify({ ...head, ...fields, ...padding })}\n\n`
}

const choice = (content: string, reason: string | null): object => ({
  choices: [{ index: 0, delta: content === "" ? {} : { role: "assistant", content }, finish_reason: reason }]
})

/** One streamed answer: pieces when they are due, no faster than the client takes them. */
class StreamedAnswer {
  private readonly response: UwsResponse
  private readonly shape: Shape
  private readonly before: string
  private readonly after: string
  private readonly model: ModelName
  private readonly start = performance.now()
  private sent = 0
  private isOver = false
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(response: UwsResponse, model: ModelName) {
    this.response = response
    this.model = model
    this.shape = shapes[model]
    const padding = "x".repeat(Math.max(0, this.shape.chunkBytes - stampDigits - 1))
    // As some upstreams do it, so that what was heard before the client left can be charged exactly.
    const usage = this.shape.falls === "silent" ? { usage: usageOf(this.shape) } : {}
    const [before = "", after = ""] = event(model, { ...choice(`#${padding}`, null), ...usage }).split("#")
    this.before = before
    this.after = after
  }

  begin(): void {
    account.open++
    this.response.onWritable(() => {
      this.response.cork(() => this.advance())
      return true
    })
    this.response.cork(() => {
      this.response.writeHeader("Content-Type", "text/event-stream")
      this.advance()
    })
  }

  abandon(): void {
    if (this.isOver) return
    this.finish()
    account.left++
    if (this.shape.falls === "silent") served(this.shape)
  }

  private advance(): void {
    const { chunks, everyMillis, falls } = this.shape
    clearTimeout(this.timer)
    let takes = true
    while (takes && this.sent < chunks) {
      const dueIn = this.start + this.sent * everyMillis - performance.now()
      if (dueIn > 0) {
        this.timer = setTimeout(() => this.response.cork(() => this.advance()), dueIn)
        return
      }
      this.sent++
      takes = this.response.write(
        Buffer.from(this.before + stampMark + String(nowMicros()).padStart(stampDigits, "0") + this.after)
      )
    }
    if (takes && this.sent === chunks && falls === undefined) this.end()
  }

  private end(): void {
    served(this.shape)
    const tail =
      event(this.model, choice("", "stop")) +
      event(this.model, { choices: [], usage: usageOf(this.shape) }) +
      "data: [DONE]\n\n"
    this.response.write(Buffer.from(tail))
    this.response.end()
    this.finish()
  }

  private finish(): void {
    this.isOver = true
    account.open--
    clearTimeout(this.timer)
  }
}

const complete = (response: UwsResponse): void => {
  let streamed: StreamedAnswer | undefined
  let isAborted = false
  response.onAborted(() => {
    isAborted = true
    streamed?.abandon()
  })
  bodyOf(response, (body) => {
    const asked: { readonly model: string; readonly stream?: boolean } = JSON.parse(body.toString("utf8"))
    if (isAborted) return
    if (!isModelName(asked.model)) response.writeStatus("404 Not Found").end("{}")
    else if (asked.stream !== true) answerWhole(response, asked.model)
    else {
      streamed = new StreamedAnswer(response, asked.model)
      streamed.begin()
    }
  })
}

const models = Object.keys(shapes).map((id) => ({
  id,
  canonical_slug: id,
  name: id,
  created: 1_767_225_600,
  description: "answers as the bench needs it",
  context_length: 131_072,
  architecture: {
    modality: "text->text",
    input_modalities: ["text"],
    output_modalities: ["text"],
    tokenizer: "Other",
    instruct_type: null
  },
  pricing: { prompt: promptPrice.usd, completion: completionPrice.usd },
  top_provider: { context_length: 131_072, max_completion_tokens: 16_384, is_moderated: false },
  per_request_limits: null,
  supported_parameters: ["max_tokens", "temperature", "tools"]
}))

const json = (response: UwsResponse, value: object): void => {
  response.writeHeader("Content-Type", "application/json").end(JSON.stringify(value))
}

/** The totals of the upstream on that port so far. */
export const accountOf = async (port: number): Promise<Account> => {
  const response = await fetch(`http://127.0.0.1:${port}/account`)
  return (await response.json()) as Account
}

/** Waits until nothing is under way there, or gives up and says what still is. */
export const untilIdle = async (port: number, patienceMillis = 10_000): Promise<Account> => {
  const deadline = performance.now() + patienceMillis
  for (;;) {
    const now = await accountOf(port)
    if (now.open === 0 || performance.now() > deadline) return now
    await pause(10)
  }
}

if (process.argv[1] === import.meta.filename) {
  serveForked((app) => {
    app.post(completionsPath, complete)
    app.get("/api/v1/models", (response) => json(response, { data: models }))
    app.get("/account", (response) => json(response, account))
  })
}
