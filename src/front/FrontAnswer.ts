/** An answer that the front gives itself, before or instead of the app: flat `{"error": "..."}` JSON where not said otherwise. */
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
export interface HotFailures {
  readonly badRequest: FrontAnswer
  readonly methodNotAllowed: FrontAnswer
  readonly bodyTooSlow: FrontAnswer
  readonly bodyTooLarge: FrontAnswer
  readonly failed: FrontAnswer
  readonly overloaded: FrontAnswer
}

const flat: HotFailures = {
  badRequest,
  methodNotAllowed,
  bodyTooSlow,
  bodyTooLarge,
  failed,
  overloaded
}

const openAiAs = (like: FrontAnswer, type: string, code: string | null): FrontAnswer => {
  const { error: message }: { readonly error: string } = JSON.parse(like.body)
  return { status: like.status, body: JSON.stringify({ error: { message, type, code, param: null } }) }
}

/** Types and codes: contract/http#error-codes. */
const nested: HotFailures = {
  badRequest: openAiAs(badRequest, "invalid_request_error", null),
  methodNotAllowed: openAiAs(methodNotAllowed, "invalid_request_error", null),
  bodyTooSlow: openAiAs(bodyTooSlow, "invalid_request_error", null),
  bodyTooLarge: openAiAs(bodyTooLarge, "invalid_request_error", "payload_too_large"),
  failed: openAiAs(failed, "server_error", "internal_error"),
  overloaded: openAiAs(overloaded, "server_error", "overloaded")
}

/** In the family of errors that the route belongs to. */
export const failuresOf = (errors: "flat" | "nested" | undefined): HotFailures =>
  errors === "nested" ? nested : flat

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
