import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization, OpenToRouterKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { integer } from "../core/Text.ts"
import { AgentInfo } from "./AgentInfo.ts"
import { AgentSession, AgentSessionDetail, AgentSessionList } from "./AgentSession.ts"
import { NotFound } from "../core/Problem.ts"

export const sessionsLimitDefault = 20
export const transcriptLimitDefault = 100

/** Sessions of the caller's owner. Errors in the plain form. Source: contract/agents#endpoints. */
export class AgentApi extends HttpApiGroup.make("agents")
  .add(
    HttpApiEndpoint.get("readAgent", "/agent", { success: AgentInfo })
      .annotate(OpenApi.Summary, "Read how to reach the agent gateway")
      .annotate(
        OpenApi.Description,
        "Its WebSocket is not in this document: see the protocol's reference at /docs/agent."
      ),
    HttpApiEndpoint.get("listAgentSessions", "/agent/sessions", {
      query: {
        limit: Schema.optionalKey(
          integer(1, 100).annotate({ description: "Sessions at most", default: sessionsLimitDefault })
        )
      },
      success: AgentSessionList
    }).annotate(OpenApi.Summary, "List agent sessions"),
    HttpApiEndpoint.get("readAgentSession", "/agent/sessions/:id", {
      params: { id: PathId },
      query: {
        after: Schema.optionalKey(
          integer(0, 2_147_483_647).annotate({
            description: "`next` of the page before; absent: the beginning"
          })
        ),
        limit: Schema.optionalKey(
          integer(1, 500).annotate({
            description: "Entries at most; long ones make a page shorter",
            default: transcriptLimitDefault
          })
        )
      },
      success: AgentSessionDetail,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Read an agent session and its transcript"),
    HttpApiEndpoint.delete("endAgentSession", "/agent/sessions/:id", {
      params: { id: PathId },
      success: AgentSession,
      error: NotFound.plain
    })
      .annotate(OpenApi.Summary, "End an agent session")
      .annotate(
        OpenApi.Description,
        "At once and for good: its client is sent away, and it cannot be resumed. Its transcript stays."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(OpenApi.annotations({ title: "Agents", description: "The coding agent's sessions." }))
  .prefix("/api/v1") {}
