import * as Record from "effect/Record"

/** An answer that the front gives itself, before or instead of the app: `{"error": "..."}` where not said otherwise. */
export interface FrontAnswer {
  readonly status: number
  readonly body: string
}

const answer = (status: number, error: string): FrontAnswer => ({ status, body: JSON.stringify({ error }) })

export const badRequest = answer(400, "Bad request")
export const notFound = answer(404, "Not found")
export const methodNotAllowed = answer(405, "Method not allowed")
export const bodyTooSlow = answer(408, "The request body arrives too slowly")
export const bodyTooLarge = answer(413, "Request body too large")
export const upgradeRequired = answer(426, "Upgrade required: this is a WebSocket endpoint")
export const failed = answer(500, "Internal server error")
export const overloaded = answer(503, "Too much is arriving at once; try again")
export const starting = answer(503, "Starting")

/** The answers that the front gives in place of a hot route. */
const plain = { badRequest, methodNotAllowed, bodyTooSlow, bodyTooLarge, failed, overloaded }
export type HotFailures = Readonly<typeof plain>

/** Writes the body of an error in another form than `{"error": "..."}`. */
export type ErrorEncoder = (status: number, text: string) => string

const encoded = (encode: ErrorEncoder, like: FrontAnswer): FrontAnswer => {
  const { error }: { readonly error: string } = JSON.parse(like.body)
  return { status: like.status, body: encode(like.status, error) }
}

const byEncoder = new Map<ErrorEncoder, HotFailures>()

/** In the form of errors that the route has. */
export const failuresOf = (encode: ErrorEncoder | undefined): HotFailures => {
  if (encode === undefined) return plain
  const known = byEncoder.get(encode)
  if (known !== undefined) return known
  const failures = Record.map(plain, (like) => encoded(encode, like))
  byEncoder.set(encode, failures)
  return failures
}

/** For a status that the app's failure led to; undefined where the app has said nothing wrong. */
export const forStatus = (status: number): FrontAnswer | undefined => byStatus.get(status)

export const jsonType: readonly [string, string] = ["Content-Type", "application/json"]

/** With `overloaded`: by then others have been answered. */
export const retrySoon: readonly [string, string] = ["Retry-After", "1"]

const byStatus = new Map(
  [badRequest, notFound, methodNotAllowed, bodyTooLarge, failed, answer(503, "Service unavailable")].map(
    (one) => [one.status, one] as const
  )
)
