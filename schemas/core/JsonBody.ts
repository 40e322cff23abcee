import { HttpApiMiddleware } from "effect/http-api"
import { BadRequest, PayloadTooLarge, UnsupportedMediaType } from "./Problem.ts"

/**
 * Guards the JSON body of an endpoint before its schema sees it: at most `limits.jsonBodyBytes` (413), valid UTF-8,
 * no deeper than `jsonDepthMax`, without what no store can keep (400, JsonFitness.ts), `application/json` or no
 * Content-Type at all (415). Of duplicate keys the last one holds.
 */
export class JsonBody extends HttpApiMiddleware.Service<JsonBody>()("signalbox/core/JsonBody", {
  error: [BadRequest.plain, PayloadTooLarge.plain, UnsupportedMediaType.plain]
}) {}

/** The same in the OpenAI form. */
export class OpenAiJsonBody extends HttpApiMiddleware.Service<OpenAiJsonBody>()(
  "signalbox/core/OpenAiJsonBody",
  {
    error: [BadRequest.openai, PayloadTooLarge.openai, UnsupportedMediaType.openai]
  }
) {}
