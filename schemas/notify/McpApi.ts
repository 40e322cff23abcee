import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { BadRequest, NotFound, PayloadTooLarge, RequestTimeout } from "../core/Problem.ts"

const message = Schema.Unknown.annotate({
  description:
    "A JSON-RPC message of the Model Context Protocol, a batch of up to 100 of them, or the body of POST /messages"
})

const answers = {
  payload: message,
  success: [Schema.Unknown.annotate({ description: "JSON-RPC responses" }), HttpApiSchema.Accepted],
  error: [BadRequest.plain, NotFound.plain, RequestTimeout.plain, PayloadTooLarge.plain]
} as const

/** As the document describes it. It is served beside the Effect pipeline, by src/notify/mcp/NotifyMcp.ts. */
export class McpApi extends HttpApiGroup.make("mcp")
  .add(
    HttpApiEndpoint.post("call", "/api/v1/mcp", answers).annotate(
      OpenApi.Summary,
      "Call the tools of notifications"
    ),
    HttpApiEndpoint.post("callUnversioned", "/mcp", answers).annotate(
      OpenApi.Summary,
      "The same at its short address"
    )
  )
  .annotate(OpenToProjectKeys, "only")
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "MCP",
      description:
        "The Model Context Protocol, of 2024-11-05 to 2026-07-28, without sessions: always JSON. Its tools are " +
        "`send_notification` and `list_projects`. Each call of the first counts as a send. 80 MiB."
    })
  ) {}
