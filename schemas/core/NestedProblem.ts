import { Schema } from "effect"

/**
 * The nested error family, `{"error": {message, type, code, param}}`, which chat-completions clients understand:
 * models, completions, collections, usage, subscription, credits, keys, plans.
 * Source: spec 1, Errors; decisions, Common (types and codes).
 */
const body = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.NullOr(Schema.String),
    param: Schema.NullOr(Schema.String).annotate({ description: "The field at fault" })
  })
}).annotate({ identifier: "NestedError" })

export class NestedBadRequest extends Schema.Error<NestedBadRequest>("NestedBadRequest")(body, {
  httpApiStatus: 400,
  description: "Bad input: param names the field"
}) {
  readonly _tag = "NestedBadRequest"
  static of(message: string, param: string | null, code: string | null = "invalid_value"): NestedBadRequest {
    return new NestedBadRequest({ error: { message, type: "invalid_request_error", code, param } })
  }
}

export class NestedUnauthorized extends Schema.Error<NestedUnauthorized>("NestedUnauthorized")(body, {
  httpApiStatus: 401,
  description: "Invalid or missing API key"
}) {
  readonly _tag = "NestedUnauthorized"
  static of(message: string): NestedUnauthorized {
    return new NestedUnauthorized({
      error: { message, type: "authentication_error", code: "invalid_api_key", param: null }
    })
  }
}

export class NestedPaymentRequired extends Schema.Error<NestedPaymentRequired>("NestedPaymentRequired")(
  body,
  {
    httpApiStatus: 402,
    description:
      "Neither credits nor a plan cover the call, or the key has reached its spend limit. With Retry-After: other " +
      "calls in progress hold what is left"
  }
) {
  readonly _tag = "NestedPaymentRequired"
}

export class NestedForbidden extends Schema.Error<NestedForbidden>("NestedForbidden")(body, {
  httpApiStatus: 403,
  description: "The key may not do this (or a rate limit configured to block)"
}) {
  readonly _tag = "NestedForbidden"
  static of(message: string, code: string | null = null): NestedForbidden {
    return new NestedForbidden({ error: { message, type: "permission_error", code, param: null } })
  }
}

export class NestedNotFound extends Schema.Error<NestedNotFound>("NestedNotFound")(body, {
  httpApiStatus: 404,
  description: "Not there, or not the caller's"
}) {
  readonly _tag = "NestedNotFound"
  static of(message: string, code: string, param: string | null = null): NestedNotFound {
    return new NestedNotFound({ error: { message, type: "invalid_request_error", code, param } })
  }
}

export class NestedConflict extends Schema.Error<NestedConflict>("NestedConflict")(body, {
  httpApiStatus: 409,
  description: "Already taken, or at odds with what is there"
}) {
  readonly _tag = "NestedConflict"
  static of(message: string, code: string, param: string | null = null): NestedConflict {
    return new NestedConflict({ error: { message, type: "conflict_error", code, param } })
  }
}

export class NestedPayloadTooLarge extends Schema.Error<NestedPayloadTooLarge>("NestedPayloadTooLarge")(
  body,
  {
    httpApiStatus: 413,
    description: "The body is over its limit"
  }
) {
  readonly _tag = "NestedPayloadTooLarge"
  static of(message: string): NestedPayloadTooLarge {
    return new NestedPayloadTooLarge({
      error: { message, type: "invalid_request_error", code: "payload_too_large", param: null }
    })
  }
}

export class NestedUnsupportedMediaType extends Schema.Error<NestedUnsupportedMediaType>(
  "NestedUnsupportedMediaType"
)(body, { httpApiStatus: 415, description: "The body has another Content-Type than the endpoint takes" }) {
  readonly _tag = "NestedUnsupportedMediaType"
  static of(message: string): NestedUnsupportedMediaType {
    return new NestedUnsupportedMediaType({
      error: { message, type: "invalid_request_error", code: null, param: null }
    })
  }
}

export class NestedRateLimited extends Schema.Error<NestedRateLimited>("NestedRateLimited")(body, {
  httpApiStatus: 429,
  description: "Rate limited; Retry-After is in seconds"
}) {
  readonly _tag = "NestedRateLimited"
  static of(message: string): NestedRateLimited {
    return new NestedRateLimited({
      error: { message, type: "rate_limit_error", code: "rate_limit_exceeded", param: null }
    })
  }
}

export class NestedServerError extends Schema.Error<NestedServerError>("NestedServerError")(body, {
  httpApiStatus: 500,
  description: "A fault of the server, with the id under which the log has its cause"
}) {
  readonly _tag = "NestedServerError"
  static of(message: string): NestedServerError {
    return new NestedServerError({
      error: { message, type: "server_error", code: "internal_error", param: null }
    })
  }
}

export class NestedBadGateway extends Schema.Error<NestedBadGateway>("NestedBadGateway")(body, {
  httpApiStatus: 502,
  description: "Every model that was asked failed"
}) {
  readonly _tag = "NestedBadGateway"
}

export class NestedServiceUnavailable extends Schema.Error<NestedServiceUnavailable>(
  "NestedServiceUnavailable"
)(body, { httpApiStatus: 503, description: "A store is away; Retry-After is in seconds" }) {
  readonly _tag = "NestedServiceUnavailable"
  static of(message: string): NestedServiceUnavailable {
    return new NestedServiceUnavailable({
      error: { message, type: "server_error", code: "overloaded", param: null }
    })
  }
}
