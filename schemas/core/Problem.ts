import { Schema } from "effect"

/**
 * The flat error family, `{"error": "<text>"}`: every endpoint but those of the nested family (OpenAiProblem.ts).
 * Source: contract/http#errors.
 */
const body = Schema.Struct({
  error: Schema.String.annotate({ description: "What was wrong, in words" })
}).annotate({
  identifier: "FlatError"
})

/** The request is malformed or a field is missing or invalid; the text starts with the field's name. */
export class BadRequest extends Schema.Error<BadRequest>("BadRequest")(body, {
  httpApiStatus: 400,
  description: "Bad input: the text names the field"
}) {
  readonly _tag = "BadRequest"
}

export class Unauthorized extends Schema.Error<Unauthorized>("Unauthorized")(body, {
  httpApiStatus: 401,
  description: "Invalid or missing API key"
}) {
  readonly _tag = "Unauthorized"
}

/** The key is good but may not do this; also a rate limit that is configured to block. */
export class Forbidden extends Schema.Error<Forbidden>("Forbidden")(body, {
  httpApiStatus: 403,
  description: "The key may not do this (or a rate limit configured to block)"
}) {
  readonly _tag = "Forbidden"
}

export class NotFound extends Schema.Error<NotFound>("NotFound")(body, {
  httpApiStatus: 404,
  description: "Not there, or not the caller's"
}) {
  readonly _tag = "NotFound"
}

export class Conflict extends Schema.Error<Conflict>("Conflict")(body, {
  httpApiStatus: 409,
  description: "Already taken, or it would leave nobody in charge"
}) {
  readonly _tag = "Conflict"
}

export class PayloadTooLarge extends Schema.Error<PayloadTooLarge>("PayloadTooLarge")(body, {
  httpApiStatus: 413,
  description: "The body is over its limit"
}) {
  readonly _tag = "PayloadTooLarge"
}

export class UnsupportedMediaType extends Schema.Error<UnsupportedMediaType>("UnsupportedMediaType")(body, {
  httpApiStatus: 415,
  description: "The body has another Content-Type than the endpoint takes"
}) {
  readonly _tag = "UnsupportedMediaType"
}

/** Over the key's rate; `Retry-After` says when to come back, in seconds. */
export class RateLimited extends Schema.Error<RateLimited>("RateLimited")(body, {
  httpApiStatus: 429,
  description: "Rate limited; Retry-After is in seconds"
}) {
  readonly _tag = "RateLimited"
}

/** A fault of the server: generic text and the request's id; the cause is only in the log. */
export class ServerError extends Schema.Error<ServerError>("ServerError")(body, {
  httpApiStatus: 500,
  description: "A fault of the server, with the id under which the log has its cause"
}) {
  readonly _tag = "ServerError"
}

const unavailableBody = Schema.Struct({
  ...body.fields,
  code: Schema.optionalKey(Schema.Literal("standby")).annotate({
    description: "`standby`: another process counts events and answers this; a load balancer asks that one"
  })
}).annotate({ identifier: "UnavailableError" })

/** A store is away, or another process has to be asked; `Retry-After` is sent. */
export class ServiceUnavailable extends Schema.Error<ServiceUnavailable>("ServiceUnavailable")(
  unavailableBody,
  {
    httpApiStatus: 503,
    description: "A store is away, or another process counts events; Retry-After is in seconds"
  }
) {
  readonly _tag = "ServiceUnavailable"
}

export class StorageFull extends Schema.Error<StorageFull>("StorageFull")(body, {
  httpApiStatus: 507,
  description: "The disk is full"
}) {
  readonly _tag = "StorageFull"
}
