import { Context, Effect, Layer } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { KeyGate } from "#src/accounts/KeyGate.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { HotHandshake, HotSocketRoute } from "#src/front/HotSocket.ts"
import { ModelAccess } from "#src/llm/ModelAccess.ts"
import { SessionPlacement } from "../SessionPlacement.ts"
import { Sockets } from "./Sockets.ts"

export const gatewayPath = "/api/v1/agent/ws"

/** The agents' WebSocket: its admission and its upgrade. Source: contract/agents#transport. */
export class Gateway extends Context.Service<Gateway, { readonly route: HotSocketRoute }>()(
  "signalbox/agents/Gateway"
) {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
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
          if (isDraining) return refuseHandshake(handshake, 503, "The server is restarting", 1)
          fork(
            Effect.map(enter(request.header("authorization"), handshake), (key) => {
              if (key === undefined) return
              // The server may have begun to drain while the key was looked up.
              if (isDraining) return refuseHandshake(handshake, 503, "The server is restarting", 1)
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
      return Gateway.of({ route })
    })
  )
}

/** Admits keys that may have sessions; all others are answered in plain HTTP. */
const entering = Effect.gen(function* () {
  const gate = yield* KeyGate
  const offer = yield* ModelAccess
  const { rateLimitMode } = yield* AppConfig
  return (authorization: string, handshake: HotHandshake): Effect.Effect<Principal | undefined> =>
    Effect.gen(function* () {
      const entry = yield* gate.enter(authorization)
      if (entry._tag === "Unknown") {
        handshake.refuse(401, [["WWW-Authenticate", "Bearer"], json], flat("Invalid or missing API key"))
        return undefined
      }
      const { headers, key, rate } = entry
      const answer = (status: number, message: string) => {
        gate.record(key, status)
        handshake.refuse(status, [...headers, json], flat(message))
        return undefined
      }
      if (!rate.allowed)
        return answer(
          rateLimitMode === "block" ? 403 : 429,
          `Rate limit of ${rate.limit} requests a minute reached`
        )
      if (!(yield* offer.mayStart(key)))
        return answer(402, "Neither an allowance, nor credits, nor a free model is there for this key")
      gate.record(key, 101)
      return key
    }).pipe(
      storeAway,
      Effect.catchTag("ServiceUnavailable", ({ error }) =>
        Effect.sync(() => refuseHandshake(handshake, 503, error, 1))
      ),
      Effect.catchCause((cause) =>
        Effect.andThen(
          Effect.logError("An upgrade failed", cause),
          Effect.sync(() => refuseHandshake(handshake, 500, "Internal error"))
        )
      )
    )
})

const json = ["Content-Type", "application/json"] as const

const flat = (error: string): string => JSON.stringify({ error })

const refuseHandshake = (
  handshake: HotHandshake,
  status: number,
  error: string,
  retryAfterSeconds?: number
): undefined => {
  const more = retryAfterSeconds === undefined ? [] : [["Retry-After", String(retryAfterSeconds)] as const]
  handshake.refuse(status, [json, ...more], flat(error))
}
