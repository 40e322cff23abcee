/** The answers that the front gives itself, before or instead of the app: flat `{"error": "..."}` JSON. */
export interface FrontAnswer {
  readonly status: number
  readonly body: string
}

const answer = (status: number, error: string): FrontAnswer => ({ status, body: JSON.stringify({ error }) })

export const badRequest = answer(400, "Bad request")
export const notFound = answer(404, "Not found")
export const methodNotAllowed = answer(405, "Method not allowed")
export const bodyTooLarge = answer(413, "Request body too large")
export const failed = answer(500, "Internal server error")
export const overloaded = answer(503, "Too much is arriving at once; try again")
export const starting = answer(503, "Starting")

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
