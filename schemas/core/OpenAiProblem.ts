import { Schema } from "effect"

/**
 * The nested error family, `{"error": {message, type, code, param}}`, which chat-completions clients understand:
 * models, completions, collections, usage, subscription, credits, keys, plans.
 * Source: contract/http#error-codes.
 */
const body = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.NullOr(Schema.String),
    param: Schema.NullOr(Schema.String).annotate({ description: "The field at fault" })
  })
}).annotate({ identifier: "OpenAiError" })

export class OpenAiBadRequest extends Schema.Error<OpenAiBadRequest>("OpenAiBadRequest")(body, {
  httpApiStatus: 400,
  description: "Bad input: param names the field"
}) {
  readonly _tag = "OpenAiBadRequest"
  static of(message: string, param: string | null, code: string | null = "invalid_value"): OpenAiBadRequest {
    return new OpenAiBadRequest({ error: { message, type: "invalid_request_error", code, param } })
  }
}

export class OpenAiUnauthorized extends Schema.Error<OpenAiUnauthorized>("OpenAiUnauthorized")(body, {
  httpApiStatus: 401,
  description: "Invalid or missing API key"
}) {
  readonly _tag = "OpenAiUnauthorized"
  static of(message: string): OpenAiUnauthorized {
    return new OpenAiUnauthorized({
      error: { message, type: "authentication_error", code: "invalid_api_key", param: null }
    })
  }
}

export class OpenAiPaymentRequired extends Schema.Error<OpenAiPaymentRequired>("OpenAiPaymentRequired")(
  body,
  {
    httpApiStatus: 402,
    description:
      "Neither credits nor a plan cover the call, or the key has reached its spend limit. With Retry-After: other " +
      "calls in progress hold what is left"
  }
) {
  readonly _tag = "OpenAiPaymentRequired"
}

export class OpenAiForbidden extends Schema.Error<OpenAiForbidden>("OpenAiForbidden")(body, {
  httpApiStatus: 403,
  description: "The key may not do this (or a rate limit configured to block)"
}) {
  readonly _tag = "OpenAiForbidden"
  static of(message: string, code: string | null = null): OpenAiForbidden {
    return new OpenAiForbidden({ error: { message, type: "permission_error", code, param: null } })
  }
}

export class OpenAiNotFound extends Schema.Error<OpenAiNotFound>("OpenAiNotFound")(body, {
  httpApiStatus: 404,
  description: "Not there, or not the caller's"
}) {
  readonly _tag = "OpenAiNotFound"
  static of(message: string, code: string, param: string | null = null): OpenAiNotFound {
    return new OpenAiNotFound({ error: { message, type: "invalid_request_error", code, param } })
  }
}

export class OpenAiConflict extends Schema.Error<OpenAiConflict>("OpenAiConflict")(body, {
  httpApiStatus: 409,
  description: "Already taken, or at odds with what is there"
}) {
  readonly _tag = "OpenAiConflict"
  static of(message: string, code: string, param: string | null = null): OpenAiConflict {
    return new OpenAiConflict({ error: { message, type: "conflict_error", code, param } })
  }
}

export class OpenAiPayloadTooLarge extends Schema.Error<OpenAiPayloadTooLarge>("OpenAiPayloadTooLarge")(
  body,
  {
    httpApiStatus: 413,
    description: "The body is over its limit"
  }
) {
  readonly _tag = "OpenAiPayloadTooLarge"
  static of(message: string): OpenAiPayloadTooLarge {
    return new OpenAiPayloadTooLarge({
      error: { message, type: "invalid_request_error", code: "payload_too_large", param: null }
    })
  }
}

export class OpenAiUnsupportedMediaType extends Schema.Error<OpenAiUnsupportedMediaType>(
  "OpenAiUnsupportedMediaType"
)(body, { httpApiStatus: 415, description: "The body has another Content-Type than the endpoint takes" }) {
  readonly _tag = "OpenAiUnsupportedMediaType"
  static of(message: string): OpenAiUnsupportedMediaType {
    return new OpenAiUnsupportedMediaType({
      error: { message, type: "invalid_request_error", code: null, param: null }
    })
  }
}

export class OpenAiRateLimited extends Schema.Error<OpenAiRateLimited>("OpenAiRateLimited")(body, {
  httpApiStatus: 429,
  description: "Rate limited; Retry-After is in seconds"
}) {
  readonly _tag = "OpenAiRateLimited"
  static of(message: string): OpenAiRateLimited {
    return new OpenAiRateLimited({
      error: { message, type: "rate_limit_error", code: "rate_limit_exceeded", param: null }
    })
  }
}

export class OpenAiServerError extends Schema.Error<OpenAiServerError>("OpenAiServerError")(body, {
  httpApiStatus: 500,
  description: "A fault of the server, with the id under which the log has its cause"
}) {
  readonly _tag = "OpenAiServerError"
  static of(message: string): OpenAiServerError {
    return new OpenAiServerError({
      error: { message, type: "server_error", code: "internal_error", param: null }
    })
  }
}

export class OpenAiBadGateway extends Schema.Error<OpenAiBadGateway>("OpenAiBadGateway")(body, {
  httpApiStatus: 502,
  description: "Every model that was asked failed"
}) {
  readonly _tag = "OpenAiBadGateway"
}

export class OpenAiServiceUnavailable extends Schema.Error<OpenAiServiceUnavailable>(
  "OpenAiServiceUnavailable"
)(body, { httpApiStatus: 503, description: "A store is away; Retry-After is in seconds" }) {
  readonly _tag = "OpenAiServiceUnavailable"
  static of(message: string): OpenAiServiceUnavailable {
    return new OpenAiServiceUnavailable({
      error: { message, type: "server_error", code: "overloaded", param: null }
    })
  }
}
