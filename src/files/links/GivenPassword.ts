import { Effect, Predicate, Result } from "effect"
import { BadRequest } from "#schemas/core/Problem.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { wholeBody } from "#src/http/WholeBody.ts"

/** The body of a POST that downloads: a password, and no more. */
export const formBytes = 16 * 1024

const presence = (text: string | null | undefined): string | undefined =>
  text === null || text === "" ? undefined : text

/** The password in the header (ASCII alone comes through whole there) or the query of a request; undefined: none. */
export const passwordIn = ({ request }: KeyedExchange, query: URLSearchParams): string | undefined =>
  presence(request.header("x-share-password")) ?? presence(query.get("password"))

/** The same of a POST, whose body goes first: a form, or JSON. Other bodies say nothing. */
export const passwordSent = Effect.fnUntraced(function* (exchange: KeyedExchange, query: URLSearchParams) {
  const bytes = yield* wholeBody(exchange.body, {
    maxBodyBytes: formBytes,
    reserve: () => true,
    tooLarge: `The body may have at most ${formBytes} bytes`
  })
  const type = exchange.request.header("content-type").split(";", 1)[0]?.trim().toLowerCase()
  const text = Buffer.from(bytes ?? []).toString("utf8")
  if (type === "application/x-www-form-urlencoded")
    return presence(new URLSearchParams(text).get("password")) ?? passwordIn(exchange, query)
  if (type !== "application/json" || text === "") return passwordIn(exchange, query)
  const body = Result.try((): unknown => JSON.parse(text))
  if (Result.isFailure(body)) return yield* BadRequest.of("The body is not valid JSON")
  const value = Predicate.hasProperty(body.success, "password") ? body.success.password : undefined
  if (value === undefined || value === null) return passwordIn(exchange, query)
  if (!Predicate.isString(value))
    return yield* BadRequest.of("password: expected text", { param: "password" })
  return presence(value)
})
