import { faultOf, Refused } from "./Refused.ts"
import type { Bearer } from "./RenewedToken.ts"
import { reportSilence } from "./Silence.ts"

export interface Asked {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE"
  readonly json?: unknown
  /** a body of another type than JSON */
  readonly body?: { readonly type: string; readonly content: Blob }
  /** beside those of the other fields */
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** sent again with the same one, a change is made once */
  readonly idempotencyKey?: string
}

/** One request to this server; fails with `Refused`, or with the abort of its signal. */
export interface Ask {
  <A>(path: string, asked?: Asked): Promise<A>
  /** the same for an answer in pieces: only its head has a time limit here */
  readonly open: (path: string, asked?: Asked) => Promise<Response>
}

/** An answer that is not complete after so long is given up. */
const answerMillis = 20_000

/** Pause before a server is asked again that does not answer at all, or names no time. */
const unansweredRetryMillis = 5_000

/** A key, which has no other in its place. */
export const keyBearer =
  (key: string): Bearer =>
  async (refused) =>
    refused === undefined ? key : undefined

/** Asks with a token or a key, which its closure holds and nothing else, or without one. Cookies go only with `same-origin`. */
export const makeAsk = (bearer?: Bearer, credentials: "omit" | "same-origin" = "omit"): Ask => {
  const send = async (path: string, asked: Asked, signal: AbortSignal): Promise<Response> => {
    const { idempotencyKey, json, method = "GET" } = asked
    const headers = new Headers(asked.headers)
    if (json !== undefined) headers.set("content-type", "application/json")
    if (asked.body !== undefined) headers.set("content-type", asked.body.type)
    if (idempotencyKey !== undefined) headers.set("idempotency-key", idempotencyKey)
    const body = json === undefined ? (asked.body?.content ?? null) : JSON.stringify(json)
    const sendWith = (token: string | undefined): Promise<Response> => {
      if (token !== undefined) headers.set("authorization", `Bearer ${token}`)
      return fetch(path, { method, headers, body, signal, credentials, cache: "no-store" })
    }
    const token = await bearer?.()
    let response = await sendWith(token)
    if (response.status === 401) {
      const another = await bearer?.(token)
      if (another !== undefined) response = await sendWith(another)
    }
    if (response.ok) return response
    const fault = faultOf(response.status, await jsonOf(response, signal))
    throw new Refused(response.status, fault.message, retryOf(response), fault)
  }
  const ask = <A>(path: string, asked: Asked = {}): Promise<A> =>
    withinTime(asked.signal, async (signal) => {
      const response = await send(path, asked, signal)
      return (await jsonOf(response, signal)) as A
    })
  return Object.assign(ask, {
    open: (path: string, asked: Asked = {}) => withinTime(asked.signal, (signal) => send(path, asked, signal))
  })
}

/**
 * Runs a request that is cancelled when its time is over, or by its caller's signal, which still holds once an answer
 * has begun.
 */
const withinTime = async <A>(
  asker: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  const own = new AbortController()
  asker?.throwIfAborted()
  asker?.addEventListener("abort", () => own.abort(asker.reason), { once: true })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    own.abort()
  }, answerMillis)
  try {
    const answer = await request(own.signal)
    asker?.throwIfAborted()
    return answer
  } catch (error) {
    asker?.throwIfAborted()
    if (error instanceof Refused) throw error
    reportSilence()
    const problem = isLate
      ? `The server has not answered for ${answerMillis / 1000} seconds`
      : "The server does not answer"
    throw new Refused(0, problem, unansweredRetryMillis)
  } finally {
    clearTimeout(timer)
  }
}

const jsonOf = async (response: Response, signal: AbortSignal): Promise<unknown> => {
  const text = await response.text()
  signal.throwIfAborted()
  try {
    return JSON.parse(text)
  } catch {
    // A proxy answered in the server's place, with words of its own: the status says enough.
    return undefined
  }
}

/** Too many requests, a store that is away, a proxy in between: these pass by themselves. */
const retryOf = ({ headers, status }: Response): number | undefined => {
  const seconds = Number(headers.get("retry-after") ?? "")
  if (seconds > 0) return seconds * 1000
  return status === 429 || status >= 500 ? unansweredRetryMillis : undefined
}
