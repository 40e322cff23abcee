import { HttpApiMiddleware } from "effect/http-api"
import { BadRequest, ServerError, ServiceUnavailable } from "./Problem.ts"

/**
 * The outermost middleware of an endpoint: a fault inside becomes an answer. A field that does not fit its schema is 400
 * and named, a store that is away 503, an unhandled fault 500 with the cause only in the log. Handlers may fail with
 * these errors themselves.
 */
export class ErrorBoundary extends HttpApiMiddleware.Service<ErrorBoundary>()(
  "signalbox/core/ErrorBoundary",
  {
    error: [BadRequest.plain, ServerError.plain, ServiceUnavailable.plain]
  }
) {}

/** The same in the OpenAI form. */
export class OpenAiErrorBoundary extends HttpApiMiddleware.Service<OpenAiErrorBoundary>()(
  "signalbox/core/OpenAiErrorBoundary",
  {
    error: [BadRequest.openai, ServerError.openai, ServiceUnavailable.openai]
  }
) {}
