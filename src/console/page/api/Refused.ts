/** A request that the server, or the way to it, refused; the message is for the person at the page. */
export class Refused extends Error {
  /** 0 where there was no answer */
  readonly status: number
  /** when it is worth trying again; undefined where it is not */
  readonly retryMillis: number | undefined
  /** the code of an error in the OpenAI form */
  readonly code: string | undefined

  constructor(status: number, message: string, retryMillis: number | undefined, code?: string) {
    super(message)
    this.status = status
    this.retryMillis = retryMillis
    this.code = code
  }
}

const at = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

/** The fault in an answer of either error family. */
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
