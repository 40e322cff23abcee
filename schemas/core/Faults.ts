import { HttpApiMiddleware } from "effect/http-api"
import { OpenAiBadRequest, OpenAiServerError, OpenAiServiceUnavailable } from "./OpenAiProblem.ts"
import { BadRequest, ServerError, ServiceUnavailable } from "./Problem.ts"

/**
 * The outermost middleware of an endpoint: turns a failure inside into an answer of the endpoint's family. A field that
 * does not fit its schema is 400 and named, a store that is away 503, an unhandled fault 500 with the cause only in the
 * log. Handlers may fail with these errors themselves.
 */
export class Faults extends HttpApiMiddleware.Service<Faults>()("signalbox/core/Faults", {
  error: [BadRequest, ServerError, ServiceUnavailable]
}) {}

/** The same for an endpoint of the nested family. */
export class OpenAiFaults extends HttpApiMiddleware.Service<OpenAiFaults>()("signalbox/core/OpenAiFaults", {
  error: [OpenAiBadRequest, OpenAiServerError, OpenAiServiceUnavailable]
}) {}
