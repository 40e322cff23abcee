import type { IncomingHttpHeaders } from "node:http"

/** A request whose body was read to its end. */
export interface SandboxRequest {
  readonly method: string
  readonly url: URL
  /** the variable parts of the path */
  readonly parts: ReadonlyArray<string>
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly nowMillis: number
}

export interface SandboxAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** sent as JSON; none where it is absent */
  readonly json?: unknown
  /** sent in place of JSON */
  readonly text?: { readonly contentType: string; readonly body: string }
}

/** A refusal. `problem` begins with the field or the header at fault, and names the expectation. */
export class SandboxRefusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** the word by which Apple's push service tells it */
  readonly reason: string | undefined
  constructor(
    status: number,
    problem: string,
    more: { readonly headers?: Readonly<Record<string, string>>; readonly reason?: string } = {}
  ) {
    super(problem)
    this.status = status
    this.headers = more.headers ?? {}
    this.reason = more.reason
  }

  get answer(): SandboxAnswer {
    const { headers, message, reason, status } = this
    return { status, headers, json: { error: message, ...(reason === undefined ? {} : { reason }) } }
  }
}

export const bad = (problem: string): SandboxRefusal => new SandboxRefusal(400, problem)

/** A field's value by its type, or undefined where it is absent or null. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>

  /** The JSON object of a body; an empty body is an empty object. */
  constructor(body: Buffer) {
    this.#values = objectOf(body)
  }

  text(name: string, matches?: RegExp, expected = "expected text"): string | undefined {
    const value = this.#values[name] ?? undefined
    if (value === undefined) return undefined
    if (typeof value !== "string" || matches?.test(value) === false) throw bad(`${name}: ${expected}`)
    return value
  }

  integer(name: string, minimum: number, maximum: number): number | undefined {
    const value = this.#values[name] ?? undefined
    if (value === undefined) return undefined
    if (typeof value !== "number" || !Number.isInteger(value) || value < minimum || value > maximum)
      throw bad(`${name}: expected a whole number from ${minimum} to ${maximum}`)
    return value
  }

  flag(name: string): boolean | undefined {
    const value = this.#values[name] ?? undefined
    if (value !== undefined && typeof value !== "boolean") throw bad(`${name}: expected true or false`)
    return value
  }

  oneOf<A extends string>(name: string, words: ReadonlyArray<A>): A | undefined {
    const value = this.#values[name] ?? undefined
    if (value === undefined) return undefined
    const word = words.find((one) => one === value)
    if (word === undefined) throw bad(`${name}: expected ${words.join(", ")}`)
    return word
  }
}

const objectOf = (body: Buffer): Readonly<Record<string, unknown>> => {
  if (body.length === 0) return {}
  const value = jsonOf(body)
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("body: expected a JSON object")
  return value as Readonly<Record<string, unknown>>
}

/** undefined where the bytes are no JSON in UTF-8. */
export const jsonOf = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    // Strangers' bytes: what they are not is said by the caller.
    return undefined
  }
}

/** A whole number of the query. */
export const queryInteger = (
  { searchParams }: URL,
  name: string,
  {
    maximum,
    minimum,
    otherwise
  }: { readonly minimum: number; readonly maximum: number; readonly otherwise: number }
): number => {
  const text = searchParams.get(name)
  if (text === null || text === "") return otherwise
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= minimum && value <= maximum))
    throw bad(`${name}: expected a whole number from ${minimum} to ${maximum}`)
  return value
}
