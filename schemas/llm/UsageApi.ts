import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OpenAiAuthorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { OpenAiErrorBoundary } from "../core/ErrorBoundary.ts"
import { UsageOfWindow, UsageOverview, usageQuery } from "./Usage.ts"

/** Usage of the key's owner, over all keys. Source: contract/llm#usage. */
export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("readUsage", "/usage", {
      query: usageQuery,
      success: Schema.Union([UsageOfWindow, UsageOverview])
    })
      .annotate(OpenApi.Summary, "Read usage")
      .annotate(
        OpenApi.Description,
        "Without `window`: all windows, and the credits. With it: that window, its series and its models. Calls that " +
          "this server has answered before are in it."
      )
  )
  .middleware(OpenAiAuthorization)
  .middleware(OpenAiErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Usage",
      description: "Requests, tokens and cost by windows of the calendar, in UTC."
    })
  )
  .prefix("/api/v1") {}
