type Fault = Pick<Refused, "message"> & Partial<Pick<Refused, "code" | "field">>

/** A request that the server, or the way to it, refused; the message is for the person at the page. */
export class Refused extends Error {
  /** 0 where there was no answer */
  readonly status: number
  /** when it is worth trying again; undefined where it is not */
  readonly retryMillis: number | undefined
  /** the code of an error in the OpenAI form */
  readonly code: string | undefined
  /** the field at fault, if the API names one */
  readonly field: string | undefined

  constructor(
    status: number,
    message: string,
    retryMillis: number | undefined,
    { code, field }: Omit<Fault, "message"> = {}
  ) {
    super(message)
    this.status = status
    this.retryMillis = retryMillis
    this.code = code
    this.field = field
  }
}

const at = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

const textAt = (value: unknown, name: string): string | undefined => {
  const text = at(value, name)
  return typeof text === "string" ? text : undefined
}

/** The fault in an answer of either form. */
export const faultOf = (status: number, body: unknown): Fault => {
  const error = at(body, "error")
  if (typeof error === "string")
    return { message: error, code: undefined, field: /^(\w+)(?:\[\d+\])?: /.exec(error)?.[1] }
  return {
    message: textAt(error, "message") ?? `The server answered ${status}`,
    code: textAt(error, "code"),
    field: textAt(error, "param")
  }
}
