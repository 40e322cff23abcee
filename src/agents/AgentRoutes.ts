import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { sessionsLimitDefault, transcriptLimitDefault } from "#schemas/agents/AgentApi.ts"
import { AgentsRoomApi } from "#schemas/agents/AgentsRoomApi.ts"
import { CurrentKey, type Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { SessionPlacement } from "./SessionPlacement.ts"
import { makeSessionsRepository, type StoredSession } from "./store/SessionsRepository.ts"
import { entriesOf, pageOf } from "./Transcript.ts"
import type { AgentSession } from "#schemas/agents/AgentSession.ts"
import { usdOf } from "#schemas/llm/Money.ts"
import type { HttpServerRequest } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import type { AgentInfo } from "#schemas/agents/AgentInfo.ts"
import { toolNames } from "#schemas/agents/ToolCall.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { AgentDownloads } from "./AgentDownloads.ts"
import { installCommands } from "./downloads/InstallScript.ts"
import { gatewayPath } from "./gateway/Gateway.ts"
import { NotFound } from "#schemas/core/Problem.ts"

/** The answer of `GET /agent`. Source: contract/agents#gateway-info. */
const agentInfo = Effect.gen(function* () {
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

const instant = (millis: number): string => new Date(millis).toISOString()

/** The time since which no client is attached; null: one is. A client of a process that died is not attached. */
const detachedSince = ({ ownerLives, state }: StoredSession): number | null =>
  state.detachedAt ?? (ownerLives ? null : state.lastSeenAt)

const statusOf = (session: StoredSession): AgentSession["status"] => {
  const { status } = session.state
  if (status === "ended") return status
  if (detachedSince(session) !== null) return "detached"
  return session.isNew ? "starting" : status
}

/** Source: contract/agents#sessions. */
export const sessionResource = (
  session: StoredSession,
  nowMillis: number,
  liveMillis: number
): AgentSession => {
  const { facts, state } = session
  const since = detachedSince(session)
  return {
    id: facts.id,
    status: statusOf(session),
    live: state.status !== "ended" && (since === null || nowMillis - since < liveMillis),
    model: state.model,
    thinking_level: state.thinkingLevel,
    workspace: { root: facts.root, name: facts.workspaceName },
    client: { version: state.clientVersion, platform: state.clientPlatform },
    prompts: state.prompts,
    tool_calls: state.toolCalls,
    tool_calls_denied: state.toolCallsDenied,
    prompt_tokens: state.promptTokens,
    completion_tokens: state.completionTokens,
    cost_usd: usdOf(BigInt(state.cost)),
    started_at: instant(facts.startedAt),
    last_seen_at: instant(state.lastSeenAt),
    ended_at: state.endedAt === null ? null : instant(state.endedAt),
    end_reason: state.endReason
  }
}

/** Ends a session at its owner's request: at once and for good; its client is told, where there is one. */
const sessionEnd = Effect.gen(function* () {
  const sessions = yield* AgentSessions
  const placement = yield* SessionPlacement
  const repository = yield* makeSessionsRepository
  const endAtHome = (id: string) => {
    if (!placement.isHere(id)) return placement.endThere(id)
    const session = sessions.peek(id)
    return session === undefined ? Effect.void : sessions.end(session, "ended_by_owner")
  }
  // Then its row, for a session that no process has in memory, or whose home does not answer: a process that has it
  // all the same can write nothing more.
  return (id: string): Effect.Effect<void, SqlError> =>
    Effect.andThen(
      Effect.catchTag(endAtHome(id), "HomeAway", () => Effect.void),
      repository.end(id)
    )
})

export const layer = HttpApiBuilder.group(
  AgentsRoomApi,
  "agents",
  Effect.fnUntraced(function* (handlers) {
    const repository = yield* makeSessionsRepository
    const endSession = yield* sessionEnd
    const infoOf = yield* agentInfo
    const { limits } = yield* AppConfig

    const caller = Effect.map(CurrentKey, ({ ownerId }) => ownerId)
    const shown = (session: StoredSession) =>
      Effect.map(Clock.currentTimeMillis, (now) => sessionResource(session, now, limits.agentLiveMillis))

    const own = Effect.fnUntraced(function* (id: string) {
      const session = yield* storeAway(repository.find(id, yield* caller))
      return session ?? (yield* NotFound.of("Session not found"))
    })

    const transcript = Effect.fnUntraced(function* (id: string, after: number, entries: number) {
      const sizes = yield* repository.sizes(id, after, limits.transcriptSteps)
      const { end, readTo } = pageOf(sizes, { entries, bytes: limits.transcriptBytes })
      const steps = sizes.length === 0 ? [] : yield* repository.steps(id, after + 1, readTo)
      const isLast = sizes.length < limits.transcriptSteps && end > (sizes.at(-1)?.index ?? -1)
      return { object: "list" as const, data: entriesOf(steps, end), next: isLast ? null : end - 1 }
    })

    return handlers.handleAll({
      readAgent: ({ request }) => Effect.flatMap(CurrentKey, (key) => storeAway(infoOf(key, request))),
      listAgentSessions: ({ query }) =>
        Effect.gen(function* () {
          const sessions = yield* storeAway(
            repository.list(yield* caller, query.limit ?? sessionsLimitDefault)
          )
          return { object: "list" as const, data: yield* Effect.forEach(sessions, shown) }
        }),
      readAgentSession: ({ params, query: { after = -1, limit = transcriptLimitDefault } }) =>
        Effect.gen(function* () {
          const session = yield* own(params.id)
          const page = yield* storeAway(transcript(params.id, after, limit))
          return { ...(yield* shown(session)), transcript: page }
        }),
      endAgentSession: ({ params }) =>
        Effect.gen(function* () {
          yield* own(params.id)
          yield* storeAway(endSession(params.id))
          return yield* shown(yield* own(params.id))
        })
    })
  })
)
