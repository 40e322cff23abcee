import type { Reachable } from "#test/harness/ApiClient.ts"

/** A chunk of a stream, as clients see it. */
export interface Frame {
  readonly id?: string
  readonly object?: string
  readonly choices: ReadonlyArray<{
    readonly index: number
    readonly delta: {
      readonly content?: string | null
      readonly tool_calls?: ReadonlyArray<{
        readonly id?: string
        readonly function: { readonly name?: string; readonly arguments: string }
      }>
    }
    readonly finish_reason: string | null
  }>
  readonly usage?: Usage
  readonly error?: OpenAiError
  readonly router?: Router
}

export interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  /** USD charged; in the summary frame */
  readonly cost?: number
}

export interface OpenAiError {
  readonly message: string
  readonly type: string
  /** in a stream a number: the status */
  readonly code: string | number | null
  readonly param: string | null
}

export interface Router {
  readonly requested: string
  readonly resolved: string
  readonly collection?: string
  readonly auto_route: boolean
  readonly attempts: number
  readonly stages: ReadonlyArray<string>
  readonly charged_usd: number
  readonly covered_by_subscription: boolean
  readonly truncated?: string
}

/** The whole of an answer to a completion, streamed or not. */
export interface ChatAnswer {
  readonly status: number
  readonly headers: Headers
  /** as it came */
  readonly raw: string
  /** the text: the contents of all chunks, or of the message */
  readonly text: string
  readonly finishReason: string | undefined
  readonly usage: Usage | undefined
  readonly router: Router | undefined
  /** of an error status, or of a stream that broke off */
  readonly error: OpenAiError | undefined
  /** of a stream, in order; [] for other answers */
  readonly frames: ReadonlyArray<Frame>
  /** the stream ended with `[DONE]`; true for other answers */
  readonly isDone: boolean
}

export interface ChatOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** One completion, read to its end. */
export const chat = async (
  { url }: Pick<Reachable, "url">,
  key: string,
  body: object,
  { headers = {}, signal }: ChatOptions = {}
): Promise<ChatAnswer> => {
  const response = await fetch(`${url}/api/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: signal ?? null
  })
  const raw = await response.text()
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const read = isStream ? readStream(raw) : readWhole(raw)
  return { status: response.status, headers: response.headers, raw, ...read }
}

type Read = Omit<ChatAnswer, "status" | "headers" | "raw">

/** Every line of a stream has to be one that the HTML standard knows, and every data line JSON or `[DONE]`. */
export const readStream = (raw: string): Read => {
  const events = raw.split("\n\n")
  if (events.pop() !== "") throw new Error(`the stream ends within an event: ${raw.slice(-200)}`)
  const data = events.flatMap((event) => event.split("\n").flatMap((line) => dataIn(line)))
  const isDone = data.at(-1) === "[DONE]"
  const frames = data.slice(0, isDone ? -1 : undefined).map((text) => JSON.parse(text) as Frame)
  const choices = frames.flatMap((frame) => frame.choices)
  return {
    text: choices.map((choice) => choice.delta.content ?? "").join(""),
    finishReason: choices.findLast((choice) => choice.finish_reason !== null)?.finish_reason ?? undefined,
    usage: frames.find(({ usage }) => usage !== undefined)?.usage,
    router: frames.find(({ router }) => router !== undefined)?.router,
    error: frames.find(({ error }) => error !== undefined)?.error,
    frames,
    isDone
  }
}

const dataIn = (line: string): ReadonlyArray<string> => {
  if (line.startsWith(":") || line.startsWith("event:") || line === "\r") return []
  if (!line.startsWith("data:")) throw new Error(`no line of an event stream: ${line}`)
  return [line.slice(5).trim()]
}

interface Whole {
  readonly choices?: ReadonlyArray<{
    readonly message: { readonly content: string | null }
    readonly finish_reason: string
  }>
  readonly usage?: Usage
  readonly router?: Router
  readonly error?: OpenAiError
}

const readWhole = (raw: string): Read => {
  const { choices, error, router, usage } = JSON.parse(raw) as Whole
  return {
    text: choices?.[0]?.message.content ?? "",
    finishReason: choices?.[0]?.finish_reason,
    usage,
    router,
    error,
    frames: [],
    isDone: true
  }
}
