import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { AgentsRoomApi } from "#schemas/agents/AgentsRoomApi.ts"
import { offers as models } from "#src/llm/Offers.ts"
import type { RoomServer } from "#src/Room.ts"
import * as ReferenceRoutes from "./reference/ReferenceRoutes.ts"
import { AgentDownloads } from "./AgentDownloads.ts"
import { metrics, readiness } from "./AgentTelemetry.ts"
import * as AgentRoutes from "./AgentRoutes.ts"
import * as ClusterSessionPlacement from "#src/agents/cluster/ClusterSessionPlacement.ts"
import { AppConfig } from "#src/Config.ts"
import * as DownloadRoutes from "#src/agents/downloads/DownloadRoutes.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as SessionMaintenance from "#src/agents/gateway/SessionMaintenance.ts"
import { makeGateway } from "#src/agents/gateway/Gateway.ts"
import { Sockets } from "#src/agents/gateway/Sockets.ts"
import * as RouterModelCalls from "#src/agents/models/RouterModelCalls.ts"
import { SessionPlacement } from "./SessionPlacement.ts"
import { SessionSweep } from "#src/agents/store/SessionSweep.ts"
import * as SessionStore from "#src/agents/store/SessionStore.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"

const sessions = Layer.unwrap(Effect.map(AppConfig, ({ limits }) => AgentSessions.layer({ limits, newId })))

/** One process is the home of all sessions; several divide them. */
const homes = Layer.unwrap(
  Effect.map(AppConfig, ({ cluster }) =>
    cluster === undefined ? SessionPlacement.layerAlone : ClusterSessionPlacement.layer
  )
)

/** From the store upwards: sessions call models through the router of this process. */
const services = SessionMaintenance.layer.pipe(
  Layer.provideMerge(Sockets.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(Layer.mergeAll(SessionStore.layer, SessionSweep.layer, homes)),
  Layer.provideMerge(RouterModelCalls.layer),
  Layer.provide(models)
)

const expiry = Sweeps.layer({
  name: "agent-sessions",
  every: "agentSweepEveryMillis",
  run: Effect.flatMap(SessionSweep, ({ expire }) => expire)
})

const endpoints = HttpApiBuilder.layer(AgentsRoomApi).pipe(Layer.provide(AgentRoutes.layer))

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    DownloadRoutes.layer,
    ReferenceRoutes.layer,
    readiness,
    metrics,
    expiry
  ).pipe(Layer.provide(AgentDownloads.layer), Layer.provide(services), Layer.provide(models)),
  raw: RawRoutes.addSockets(makeGateway).pipe(Layer.provide([services, models])),
  paths: [...DownloadRoutes.paths, ...ReferenceRoutes.paths]
}
