import { Refused } from "../api/Refused.ts"

/** The `router` block of an answer. Source: contract/llm#router-block. */
export interface RouterBlock {
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

export interface TokenUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

/** The fields of a streamed completion's event that the page reads. Source: contract/llm#streams. */
export interface CompletionEvent {
  readonly choices?: ReadonlyArray<{
    readonly delta?: { readonly content?: string | null }
    readonly finish_reason?: string | null
  }>
  readonly usage?: TokenUsage | null
  readonly router?: RouterBlock
  readonly error?: { readonly message?: string }
}

/** The server writes every 15 seconds into a live stream: after three such pauses it counts as over. */
const silenceMillis = 45_000

/** The events of a stream, one after the other; comments and `[DONE]` are left out. Fails with `Refused` once it is silent. */
export const completionEvents = async function* (response: Response): AsyncGenerator<CompletionEvent> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await inTime(reader)
    if (done) return
    const lines = (rest + value).split(/\r?\n/)
    rest = lines.pop() ?? ""
    for (const line of lines) {
      if (line.startsWith("data: {")) yield JSON.parse(line.slice("data: ".length)) as CompletionEvent
    }
  }
}

const inTime = async <A>(reader: ReadableStreamDefaultReader<A>) => {
  const silent = new Refused(
    0,
    `The server has said nothing for ${silenceMillis / 1000} seconds. Run it again`,
    undefined
  )
  let isSilent = false
  const timer = setTimeout(() => {
    isSilent = true
    // Ends the read under way as if the stream were over, and the request with it.
    void reader.cancel(silent)
  }, silenceMillis)
  try {
    const read = await reader.read()
    if (isSilent) throw silent
    return read
  } finally {
    clearTimeout(timer)
  }
}
