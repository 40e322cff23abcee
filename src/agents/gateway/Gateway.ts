import { Effect } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  bodyOf,
  headersOf,
  PaymentRequired,
  type Problem,
  ServerError,
  ServiceUnavailable
} from "#schemas/core/Problem.ts"
import { Admission, anyKey } from "#src/accounts/Admission.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { HotRequest } from "#src/front/HotRoute.ts"
import type { HotHandshake, HotSocketRoute } from "#src/front/HotSocket.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { SessionPlacement } from "../SessionPlacement.ts"
import { Sockets } from "./Sockets.ts"

export const gatewayPath = "/api/v1/agent/ws"

/** The agents' WebSocket: its admission and its upgrade. Source: contract/agents#transport. */
export const makeGateway = Effect.gen(function* () {
  const sockets = yield* Sockets
  const homes = yield* SessionPlacement
  const enter = yield* entering
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  let isDraining = false
  const route: HotSocketRoute = {
    path: gatewayPath,
    headers: ["authorization"],
    maxFrameBytes: agentLimits.frameBytes,
    upgrade: (request, handshake) => {
      if (isDraining) return refuse(handshake, restarting())
      fork(
        Effect.map(enter(request, handshake), (key) => {
          if (key === undefined) return
          // The server may have begun to drain while the key was looked up.
          if (isDraining) return refuse(handshake, restarting())
          handshake.accept((socket) => sockets.serve(key, socket))
        })
      )
    },
    drain: () => {
      isDraining = true
      sockets.sayGoodbye()
      fork(homes.depart)
    }
  }
  return [route]
})

/** The key of a handshake that may have sessions; any other is answered in plain HTTP. */
const entering = Effect.gen(function* () {
  const admission = yield* Admission
  const offer = yield* ModelAccess
  return (request: HotRequest, handshake: HotHandshake): Effect.Effect<Principal | undefined> =>
    Effect.gen(function* () {
      const { headers, key, refusal } = yield* admission.enter(
        request.header("authorization"),
        anyKey,
        request
      )
      const problem = refusal ?? ((yield* storeAway(offer.mayStart(key))) ? undefined : notCovered())
      admission.record(key, problem?.status ?? 101)
      if (problem === undefined) return key
      return refuse(handshake, problem, headers)
    }).pipe(
      Effect.catch((problem) => Effect.sync(() => refuse(handshake, problem))),
      Effect.catchCause((cause) =>
        Effect.andThen(
          Effect.logError("An upgrade failed", cause),
          Effect.sync(() => refuse(handshake, ServerError.of("Internal error")))
        )
      )
    )
})

const restarting = () => ServiceUnavailable.of("The server is restarting", { retryAfterSeconds: 1 })

const notCovered = () =>
  PaymentRequired.of("Neither an allowance, nor credits, nor a free model is there for this key")

const refuse = (
  handshake: HotHandshake,
  problem: Problem,
  headers: Readonly<Record<string, string>> = {}
): undefined => {
  const all = { "content-type": "application/json", ...headers, ...headersOf(problem) }
  handshake.refuse(problem.status, Object.entries(all), bodyOf(problem, "plain"))
}
