import { HttpApi, OpenApi } from "effect/http-api"
import { AccountApi } from "./accounts/AccountApi.ts"
import { AdminApi } from "./accounts/AdminApi.ts"
import { KeysApi } from "./accounts/KeysApi.ts"
import { AgentApi } from "./agents/AgentApi.ts"
import { ImportApi } from "./analytics/ImportApi.ts"
import { IngestApi } from "./analytics/IngestApi.ts"
import { RebuildApi } from "./analytics/RebuildApi.ts"
import { ScriptsApi } from "./analytics/ScriptsApi.ts"
import { SitesApi } from "./analytics/SitesApi.ts"
import { PublicStatsApi, StatsApi } from "./analytics/StatsApi.ts"
import { describeQuery } from "./core/DescribeQuery.ts"
import { CollectionsApi } from "./llm/CollectionsApi.ts"
import { CompletionsApi } from "./llm/CompletionsApi.ts"
import { CreditsApi } from "./llm/CreditsApi.ts"
import { LedgerApi } from "./llm/LedgerApi.ts"
import { MarkupsApi } from "./llm/MarkupsApi.ts"
import { ModelsApi } from "./llm/ModelsApi.ts"
import { PlansApi } from "./llm/PlansApi.ts"
import { SubscriptionsApi } from "./llm/SubscriptionsApi.ts"
import { UsageApi } from "./llm/UsageApi.ts"
import { QuarantineApi } from "./system/QuarantineApi.ts"
import { SystemApi } from "./system/SystemApi.ts"

const description = `One self-hosted server for AI products and websites.

Every endpoint under \`/api/v1\` takes \`Authorization: Bearer <API_KEY>\`. Answers carry \`X-Request-Id\` and, where a
key was used, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds); a refusal adds
\`Retry-After\`. Unknown query parameters are ignored, known and invalid ones are 400. Unknown paths are 404, wrong
methods 405 with \`Allow\`, both with the flat error body \`{"error": "…"}\`.`

/** What every server has: accounts, and how it is. */
export class AccountsRoomApi extends HttpApi.make("signalbox")
  .add(AccountApi)
  .add(AdminApi)
  .add(KeysApi)
  .add(QuarantineApi)
  .add(SystemApi) {}

export class AnalyticsRoomApi extends HttpApi.make("signalbox")
  .add(SitesApi)
  .add(StatsApi)
  .add(PublicStatsApi)
  .add(ImportApi)
  .add(RebuildApi) {}

export class LlmRoomApi extends HttpApi.make("signalbox")
  .add(ModelsApi)
  .add(CollectionsApi)
  .add(MarkupsApi)
  .add(CreditsApi)
  .add(PlansApi)
  .add(SubscriptionsApi)
  .add(LedgerApi)
  .add(UsageApi) {}

export class AgentsRoomApi extends HttpApi.make("signalbox").add(AgentApi) {}

/**
 * The endpoints of all rooms that pass the Effect pipeline. Bodies are what the document says: a member that is not in the
 * schema is refused, for a restriction that is misspelt and dropped would be none.
 */
export class Api extends AccountsRoomApi.addHttpApi(AnalyticsRoomApi)
  .addHttpApi(LlmRoomApi)
  .addHttpApi(AgentsRoomApi)
  .annotate(HttpApi.PayloadParseOptions, { onExcessProperty: "error" }) {}

const published = Api.add(IngestApi).add(ScriptsApi).add(CompletionsApi)

/** `Api` and what is served beside the pipeline: `/openapi.json`, `/docs` and the typed client are made from it. */
export class PublishedApi extends published.annotateMerge(
  OpenApi.annotations({ title: "Signalbox", version: "1", description, transform: describeQuery(published) })
) {}
