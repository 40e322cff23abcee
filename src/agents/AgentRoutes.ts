import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { sessionsLimitDefault, transcriptLimitDefault } from "#schemas/agents/AgentApi.ts"
import { AgentsRoomApi } from "#schemas/agents/AgentsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { NotFound } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { agentInfo } from "./AgentInfo.ts"
import { SessionEnder } from "./SessionEnder.ts"
import { sessionResource } from "./SessionResource.ts"
import { SessionsRepository, type StoredSession } from "./store/SessionsRepository.ts"
import { entriesOf, pageOf } from "./Transcript.ts"

export const layer = HttpApiBuilder.group(
  AgentsRoomApi,
  "agents",
  Effect.fnUntraced(function* (handlers) {
    const repository = yield* SessionsRepository
    const ender = yield* SessionEnder
    const infoOf = yield* agentInfo
    const { limits } = yield* AppConfig

    const caller = Effect.map(CurrentKey, ({ userId }) => userId)
    const shown = (session: StoredSession) =>
      Effect.map(Clock.currentTimeMillis, (now) => sessionResource(session, now, limits.agentLiveMillis))

    const own = Effect.fnUntraced(function* (id: string) {
      const session = yield* storeAway(repository.find(id, yield* caller))
      return session ?? (yield* new NotFound({ error: "Session not found" }))
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
          yield* storeAway(ender.end(params.id))
          return yield* shown(yield* own(params.id))
        })
    })
  })
)
