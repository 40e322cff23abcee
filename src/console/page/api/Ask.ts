/** A request that the server, or the way to it, refused; the message is for the person at the page. */
export class Refused extends Error {
  /** 0 where there was no answer */
  readonly status: number
  /** when it is worth trying again; undefined where it is not */
  readonly retryMillis: number | undefined

  constructor(status: number, message: string, retryMillis: number | undefined) {
    super(message)
    this.status = status
    this.retryMillis = retryMillis
  }
}

interface Asked {
  readonly method?: "GET" | "POST" | "PATCH"
  readonly json?: unknown
  readonly signal?: AbortSignal
}

/** One request to this server; fails with `Refused`, or with the abort of its signal. */
export type Ask = <A>(path: string, asked?: Asked) => Promise<A>

/** How long to wait for a server that does not answer at all, or does not say. */
const unansweredRetryMillis = 5_000

/** Asks with the account key, or without one. The key is held by this closure and is nowhere else. */
export const makeAsk =
  (key: string | undefined): Ask =>
  async <A>(path: string, { json, method = "GET", signal }: Asked = {}): Promise<A> => {
    const headers = new Headers({ accept: "application/json" })
    if (key !== undefined) headers.set("authorization", `Bearer ${key}`)
    if (json !== undefined) headers.set("content-type", "application/json")
    const response = await fetch(path, {
      method,
      headers,
      body: json === undefined ? null : JSON.stringify(json),
      signal: signal ?? null,
      credentials: "omit",
      cache: "no-store"
    }).catch((error: unknown) => {
      if (signal?.aborted === true) throw error
      throw new Refused(0, "The server does not answer", unansweredRetryMillis)
    })
    const body = await jsonOf(response)
    signal?.throwIfAborted()
    if (response.ok) return body as A
    throw new Refused(response.status, wordsOf(response.status, body), retryOf(response))
  }

const jsonOf = async (response: Response): Promise<unknown> => {
  try {
    return await response.json()
  } catch {
    // Something in between answered in the server's place, with words of its own: the status says enough.
    return undefined
  }
}

const wordsOf = (status: number, body: unknown): string =>
  typeof body === "object" && body !== null && "error" in body && typeof body.error === "string"
    ? body.error
    : `The server answered ${status}`

/** Too many requests, a store that is away, a proxy in between: these pass by themselves. */
const retryOf = ({ headers, status }: Response): number | undefined => {
  const seconds = Number(headers.get("retry-after") ?? "")
  if (seconds > 0) return seconds * 1000
  return status === 429 || status >= 500 ? unansweredRetryMillis : undefined
}
