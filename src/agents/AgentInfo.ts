import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import type { AgentInfo } from "#schemas/agents/AgentInfo.ts"
import { toolNames } from "#schemas/agents/ToolCall.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { AgentDownloads } from "./AgentDownloads.ts"
import { installCommands } from "./downloads/InstallScript.ts"
import { gatewayPath } from "./gateway/Gateway.ts"

/** What `GET /agent` says to a key. Source: contract/agents#gateway-info. */
export const agentInfo = Effect.gen(function* () {
  const offer = yield* ModelAccess
  const downloads = yield* AgentDownloads
  const urlFor = yield* serverUrlFor
  return Effect.fnUntraced(function* (
    key: Principal,
    request: HttpServerRequest.HttpServerRequest
  ): Effect.fn.Return<AgentInfo, SqlError> {
    const url = urlFor(request)
    const gateway = {
      url: `${url.replace(/^http/, "ws")}${gatewayPath}`,
      path: gatewayPath,
      auth: "Authorization: Bearer <API_KEY> on the upgrade request"
    }
    const list = downloads.list()
    const model = yield* offer.defaultModel(key)
    return {
      protocol: 1,
      gateway,
      tools: toolNames,
      billing: yield* offer.billing(key, model?.id),
      default_model: model?.id ?? null,
      models: offer.models(key),
      downloads: list.map(({ arch, filename, label, sha256, sizeBytes, url: path }) => ({
        arch,
        label,
        filename,
        url: path,
        size_bytes: sizeBytes,
        sha256
      })),
      downloads_available: list.length > 0,
      downloads_note: downloads.note(),
      install: installCommands(url, list)
    }
  })
})
