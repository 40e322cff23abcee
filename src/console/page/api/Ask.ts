/** A request that the server, or the way to it, refused; the message is for the person at the page. */
export class Refused extends Error {
  /** 0 where there was no answer */
  readonly status: number
  /** when it is worth trying again; undefined where it is not */
  readonly retryMillis: number | undefined
  /** what the nested family calls the fault */
  readonly code: string | undefined

  constructor(status: number, message: string, retryMillis: number | undefined, code?: string) {
    super(message)
    this.status = status
    this.retryMillis = retryMillis
    this.code = code
  }
}

export interface Asked {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE"
  readonly json?: unknown
  readonly signal?: AbortSignal
}

/** One request to this server; fails with `Refused`, or with the abort of its signal. */
export interface Ask {
  <A>(path: string, asked?: Asked): Promise<A>
  /** the same, where the answer comes piece by piece */
  readonly open: (path: string, asked?: Asked) => Promise<Response>
}

/** How long to wait for a server that does not answer at all, or does not say. */
const unansweredRetryMillis = 5_000

/** Asks with the account key, or without one. The key is held by this closure and is nowhere else. */
export const makeAsk = (key: string | undefined): Ask => {
  const open: Ask["open"] = async (path, { json, method = "GET", signal } = {}) => {
    const headers = new Headers()
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
    if (response.ok) return response
    const { code, message } = faultOf(response.status, await jsonOf(response))
    signal?.throwIfAborted()
    throw new Refused(response.status, message, retryOf(response), code)
  }
  const ask = async <A>(path: string, asked: Asked = {}): Promise<A> => {
    const body = await jsonOf(await open(path, asked))
    asked.signal?.throwIfAborted()
    return body as A
  }
  return Object.assign(ask, { open })
}

const jsonOf = async (response: Response): Promise<unknown> => {
  try {
    return await response.json()
  } catch {
    // Something in between answered in the server's place, with words of its own: the status says enough.
    return undefined
  }
}

const at = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

/** What an answer of either error family says. */
export const faultOf = (
  status: number,
  body: unknown
): { readonly message: string; readonly code?: string } => {
  const error = at(body, "error")
  const [message, code] = typeof error === "string" ? [error] : [at(error, "message"), at(error, "code")]
  return {
    message: typeof message === "string" ? message : `The server answered ${status}`,
    ...(typeof code === "string" ? { code } : {})
  }
}

/** Too many requests, a store that is away, a proxy in between: these pass by themselves. */
const retryOf = ({ headers, status }: Response): number | undefined => {
  const seconds = Number(headers.get("retry-after") ?? "")
  if (seconds > 0) return seconds * 1000
  return status === 429 || status >= 500 ? unansweredRetryMillis : undefined
}
