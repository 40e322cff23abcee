import { Data, Predicate, Schema, SchemaGetter } from "effect"

/** `{"error": "<text>"}`, or the form that chat-completions clients understand. */
export type ErrorFormat = "plain" | "openai"

interface Fields {
  /** a sentence; it begins with the field at fault, where there is one */
  readonly message: string
  readonly code: string | null
  readonly param: string | null
  /** whole seconds, for `Retry-After` */
  readonly retryAfterSeconds?: number | undefined
  /** for `x-should-retry`, where the rule of clients would be wrong */
  readonly shouldRetry?: boolean | undefined
}

/** An error of an endpoint, whose group decides on the form. Source: contract/http#errors. */
export abstract class Problem extends Data.Error<Fields> {
  abstract readonly _tag: string
  abstract readonly status: number
  /** the class of the error in the OpenAI form */
  abstract readonly type: string
}

const plainBody = Schema.Struct({
  error: Schema.String.annotate({ description: "What was wrong, in words" })
}).annotate({ identifier: "FlatError" })

/** The code that load balancers read; no other is in a plain body. */
const standby = "standby"

const unavailableBody = Schema.Struct({
  ...plainBody.fields,
  code: Schema.optionalKey(Schema.Literal(standby)).annotate({
    description: "`standby`: another process counts events and answers this; a load balancer asks that one"
  })
}).annotate({ identifier: "UnavailableError" })

const openAiBody = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.NullOr(Schema.String),
    param: Schema.NullOr(Schema.String).annotate({ description: "The field at fault" })
  })
}).annotate({ identifier: "OpenAiError" })

const plainOf = ({ code, message }: Problem): typeof unavailableBody.Type =>
  code === standby ? { error: message, code } : { error: message }

const openAiOf = ({ code, message, param, type }: Problem): typeof openAiBody.Type => ({
  error: { message, type, code, param }
})

export const bodyOf = (problem: Problem, format: ErrorFormat): string =>
  JSON.stringify(format === "openai" ? openAiOf(problem) : plainOf(problem))

/** For a 503 that names no time: long enough for a store to restart, short enough to be worth it. */
const retryAfterDefaultSeconds = 5

/** The OpenAI form of an error that is known by its status alone, as the front's own answers are. */
export const openAiError = (status: number, message: string): string => {
  const { code, type } = statuses.get(status) ?? { type: invalid, code: null }
  return JSON.stringify({ error: { message, type, code, param: null } })
}

/** Clients ignore a wait for their rate that is longer, and come back at once. Source: contract/http#rate-limits. */
const retryWorthwhileSeconds = 60

/** The headers that go with an error, beside those of every answer. */
export const headersOf = (problem: Problem): Record<string, string> => {
  const { status } = problem
  const seconds = problem.retryAfterSeconds ?? (status === 503 ? retryAfterDefaultSeconds : undefined)
  const isTooLong = seconds !== undefined && seconds > retryWorthwhileSeconds && status !== 503
  const shouldRetry = problem.shouldRetry ?? (isTooLong ? false : undefined)
  return {
    ...(seconds === undefined ? {} : { "retry-after": String(seconds) }),
    ...(shouldRetry === undefined ? {} : { "x-should-retry": String(shouldRetry) }),
    // RFC 9110, 15.5.2: a 401 names the way to authenticate.
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {})
  }
}

const statuses = new Map<number, Pick<Fields, "code"> & { readonly type: string }>()

/**
 * A line of the table of errors: a class whose instances are yielded or failed with, made by `of`, and the schemas of
 * its two forms for endpoints to declare. `code` is the one in the OpenAI form where an instance names none.
 */
const problem = <const Tag extends string>(
  tag: Tag,
  status: number,
  type: string,
  code: string | null,
  description: string
) => {
  statuses.set(status, { type, code })
  class Kind extends Problem {
    override readonly _tag = tag
    override readonly status = status
    override readonly type = type

    static of(message: string, details: Partial<Omit<Fields, "message">> = {}): Kind {
      return new Kind({ message, code, param: null, ...details })
    }
  }
  const kind = Schema.declare(
    (value): value is Kind => Predicate.isTagged(value, tag) && value instanceof Problem
  )
  const annotations = { httpApiStatus: status, description }
  return Object.assign(Kind, {
    plain: (status === 503 ? unavailableBody : plainBody).pipe(
      Schema.decodeTo(kind, {
        decode: SchemaGetter.transform((body: typeof unavailableBody.Type) =>
          Kind.of(body.error, { code: body.code ?? code })
        ),
        encode: SchemaGetter.transform(plainOf)
      }),
      Schema.annotate(annotations)
    ),
    openai: openAiBody.pipe(
      Schema.decodeTo(kind, {
        decode: SchemaGetter.transform(({ error: { message, code, param } }: typeof openAiBody.Type) =>
          Kind.of(message, { code, param })
        ),
        encode: SchemaGetter.transform(openAiOf)
      }),
      Schema.annotate(annotations)
    )
  })
}

const invalid = "invalid_request_error"
const busy = "server_error"

export class BadRequest extends problem("BadRequest", 400, invalid, null, "Bad input: the field is named") {}
export class Unauthorized extends problem(
  "Unauthorized",
  401,
  "authentication_error",
  "invalid_api_key",
  "Invalid or missing API key"
) {}
export class PaymentRequired extends problem(
  "PaymentRequired",
  402,
  "insufficient_quota",
  null,
  "Neither credits nor a plan cover the call, or the key has reached its spend limit. With Retry-After: other " +
    "calls in progress hold what is left"
) {}
export class Forbidden extends problem(
  "Forbidden",
  403,
  "permission_error",
  null,
  "The key may not do this (or a rate limit configured to block)"
) {}
export class NotFound extends problem("NotFound", 404, invalid, null, "Not there, or not the caller's") {}
export class MethodNotAllowed extends problem(
  "MethodNotAllowed",
  405,
  invalid,
  null,
  "The path has other methods"
) {}
export class RequestTimeout extends problem(
  "RequestTimeout",
  408,
  invalid,
  null,
  "The body comes too slowly"
) {}
export class Conflict extends problem(
  "Conflict",
  409,
  "conflict_error",
  null,
  "Already taken, or at odds with what is there"
) {}
export class Gone extends problem("Gone", 410, invalid, null, "It was there, and is not any more") {}
export class PreconditionFailed extends problem(
  "PreconditionFailed",
  412,
  invalid,
  "precondition_failed",
  "It is not what If-Match or If-None-Match says"
) {}
export class PayloadTooLarge extends problem(
  "PayloadTooLarge",
  413,
  invalid,
  "payload_too_large",
  "The body is over its limit"
) {}
export class UnsupportedMediaType extends problem(
  "UnsupportedMediaType",
  415,
  invalid,
  null,
  "The body has another Content-Type than the endpoint takes"
) {}
export class UnprocessableContent extends problem(
  "UnprocessableContent",
  422,
  invalid,
  "unprocessable_content",
  "The bytes are not those that the request says"
) {}
export class RateLimited extends problem(
  "RateLimited",
  429,
  "rate_limit_error",
  "rate_limit_exceeded",
  "Rate limited; Retry-After is in seconds"
) {}
export class ServerError extends problem(
  "ServerError",
  500,
  busy,
  "internal_error",
  "A fault of the server, with the id under which the log has its cause"
) {}
export class NotImplemented extends problem(
  "NotImplemented",
  501,
  busy,
  "not_implemented",
  "The server's operator has switched this off"
) {}
export class BadGateway extends problem(
  "BadGateway",
  502,
  busy,
  "upstream_error",
  "Every model that was asked failed"
) {}
export class ServiceUnavailable extends problem(
  "ServiceUnavailable",
  503,
  busy,
  "overloaded",
  "Not at the moment: a store is away, or there is too much to do; Retry-After is in seconds"
) {}
export class StorageFull extends problem(
  "StorageFull",
  507,
  busy,
  "storage_full",
  "No room: on the disk, or in the quota"
) {}

/** 400 of one field: the text begins with it. `field` is "" where the body as a whole is at fault. */
export const invalidField = (field: string, text: string, code: string | null = "invalid_value") =>
  field === "" ? BadRequest.of(text) : BadRequest.of(`${field}: ${text}`, { param: field, code })
