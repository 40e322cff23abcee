import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { AgentApi } from "./AgentApi.ts"

/** The endpoints of agent sessions. */
export class AgentsRoomApi extends HttpApi.make("signalbox")
  .add(AgentApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
