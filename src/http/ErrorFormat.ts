import * as Nested from "#schemas/core/OpenAiProblem.ts"
import * as Flat from "#schemas/core/Problem.ts"

/**
 * The two error families behind one face, so that a middleware is written once and answers in the family of its
 * endpoint: it asks for the constructors it needs. Texts are the same in both; the nested one adds the field as `param`.
 */

/** `field` is "" when the fault is not one field's. */
const named = (field: string, text: string): string => (field === "" ? text : `${field}: ${text}`)

export const flat = {
  badRequest: (field: string, text: string) => new Flat.BadRequest({ error: named(field, text) }),
  unauthorized: (error: string) => new Flat.Unauthorized({ error }),
  forbidden: (error: string) => new Flat.Forbidden({ error }),
  tooLarge: (error: string) => new Flat.PayloadTooLarge({ error }),
  unsupported: (error: string) => new Flat.UnsupportedMediaType({ error }),
  rateLimited: (error: string) => new Flat.RateLimited({ error }),
  serverError: (error: string) => new Flat.ServerError({ error }),
  unavailable: (error: string) => new Flat.ServiceUnavailable({ error })
}

export const nested = {
  badRequest: (field: string, text: string) =>
    Nested.OpenAiBadRequest.of(
      named(field, text),
      field === "" ? null : field,
      field === "" ? null : "invalid_value"
    ),
  unauthorized: Nested.OpenAiUnauthorized.of,
  forbidden: (text: string) => Nested.OpenAiForbidden.of(text),
  tooLarge: Nested.OpenAiPayloadTooLarge.of,
  unsupported: Nested.OpenAiUnsupportedMediaType.of,
  rateLimited: Nested.OpenAiRateLimited.of,
  serverError: Nested.OpenAiServerError.of,
  unavailable: Nested.OpenAiServiceUnavailable.of
}
