import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { AgentsRoomApi } from "#schemas/Api.ts"
import { AgentDownloads } from "#src/agents/AgentDownloads.ts"
import * as AgentMetrics from "#src/agents/AgentMetrics.ts"
import * as AgentReadiness from "#src/agents/AgentReadiness.ts"
import * as AgentRoutes from "#src/agents/AgentRoutes.ts"
import * as ClusterSessionHomes from "#src/agents/cluster/ClusterSessionHomes.ts"
import { AppConfig } from "#src/Config.ts"
import * as DownloadRoutes from "#src/agents/downloads/DownloadRoutes.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as Caretaker from "#src/agents/gateway/Caretaker.ts"
import { Gateway } from "#src/agents/gateway/Gateway.ts"
import { Greeting } from "#src/agents/gateway/Greeting.ts"
import { Sockets } from "#src/agents/gateway/Sockets.ts"
import { PromptImages } from "#src/agents/models/PromptImages.ts"
import * as RouterModelCalls from "#src/agents/models/RouterModelCalls.ts"
import { SessionEnder } from "#src/agents/SessionEnder.ts"
import { SessionHomes } from "#src/agents/SessionHomes.ts"
import { AgentOwners } from "#src/agents/store/AgentOwners.ts"
import { SessionsRepository } from "#src/agents/store/SessionsRepository.ts"
import { SessionSweep } from "#src/agents/store/SessionSweep.ts"
import * as SessionStore from "#src/agents/store/SessionStore.ts"
import { HotRouteTable } from "./HotRouteTable.ts"
import * as LlmRoom from "./LlmRoom.ts"

const sessions = Layer.unwrap(Effect.map(AppConfig, ({ limits }) => AgentSessions.layer({ limits, newId })))

/** One process is the home of all sessions; several divide them. */
const homes = Layer.unwrap(
  Effect.map(AppConfig, ({ cluster }) =>
    cluster === undefined ? SessionHomes.layerAlone : ClusterSessionHomes.layer(cluster)
  )
)

/** From the store upwards: sessions call models through the router of this process. */
const services = Layer.mergeAll(Gateway.layer, Caretaker.layer).pipe(
  Layer.provideMerge(Sockets.layer),
  Layer.provideMerge(Greeting.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(Layer.mergeAll(SessionStore.layer, SessionSweep.layer, homes)),
  Layer.provideMerge(AgentOwners.layer),
  Layer.provideMerge(RouterModelCalls.layer),
  Layer.provideMerge(PromptImages.layer),
  Layer.provide(LlmRoom.services)
)

export const hotSockets = HotRouteTable.addSockets(Effect.map(Gateway, ({ route }) => [route])).pipe(
  Layer.provide(services)
)

export const api = AgentsRoomApi

/** What is served beside the API. */
export const paths = DownloadRoutes.paths

const apiRoutes = HttpApiBuilder.layer(AgentsRoomApi).pipe(Layer.provide(AgentRoutes.layer))

export const routes = Layer.mergeAll(
  apiRoutes,
  DownloadRoutes.layer,
  AgentReadiness.layer,
  AgentMetrics.layer
).pipe(
  Layer.provide(SessionEnder.layer),
  Layer.provide([SessionsRepository.layer, AgentDownloads.layer]),
  Layer.provide(services),
  Layer.provide(LlmRoom.services)
)
