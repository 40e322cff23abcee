import { Effect, Layer } from "effect"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as Caretaker from "#src/agents/gateway/Caretaker.ts"
import { Gateway } from "#src/agents/gateway/Gateway.ts"
import { Greeting } from "#src/agents/gateway/Greeting.ts"
import { PromptImages } from "#src/agents/models/PromptImages.ts"
import * as RouterModelCalls from "#src/agents/models/RouterModelCalls.ts"
import { SessionHomes } from "#src/agents/SessionHomes.ts"
import { AgentOwners } from "#src/agents/store/AgentOwners.ts"
import { SessionSweep } from "#src/agents/store/SessionSweep.ts"
import * as SessionStore from "#src/agents/store/SessionStore.ts"
import { HotRouteTable } from "./HotRouteTable.ts"
import * as LlmRoom from "./LlmRoom.ts"

const sessions = Layer.unwrap(Effect.map(AppConfig, ({ limits }) => AgentSessions.layer({ limits, newId })))

/** From the store upwards: sessions call models through the router of this process. */
const services = Layer.mergeAll(Gateway.layer, Caretaker.layer).pipe(
  Layer.provideMerge(Greeting.layer),
  Layer.provideMerge(sessions),
  Layer.provideMerge(Layer.mergeAll(SessionStore.layer, SessionSweep.layer, SessionHomes.layerAlone)),
  Layer.provideMerge(AgentOwners.layer),
  Layer.provideMerge(RouterModelCalls.layer),
  Layer.provideMerge(PromptImages.layer),
  Layer.provide(LlmRoom.services)
)

export const hotSockets = HotRouteTable.addSockets(Effect.map(Gateway, ({ route }) => [route])).pipe(
  Layer.provide(services)
)
