import { Context, Effect, Layer, Schedule } from "effect"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import type { AgentSession } from "#actors/agents/AgentSession.ts"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { Hello } from "#schemas/agents/ClientFrame.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { KeyGate } from "#src/accounts/KeyGate.ts"
import { Keys } from "#src/accounts/Keys.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/infra/http/StoreAway.ts"
import type { HotHandshake, HotSocketRoute } from "#src/infra/uws/HotSocket.ts"
import { AgentOffer } from "#src/llm/AgentOffer.ts"
import { SessionHomes } from "../SessionHomes.ts"
import { ClientSocket, type SocketKeeper } from "./ClientSocket.ts"
import { refuse } from "./Farewell.ts"
import { Greeting } from "./Greeting.ts"
import { Pulse } from "./Pulse.ts"

export const gatewayPath = "/api/v1/agent/ws"

/** The agents' WebSocket: who may open it, and what becomes of it. Source: spec 1, Agent gateway transport. */
export class Gateway extends Context.Service<Gateway, { readonly route: HotSocketRoute }>()(
  "signalbox/agents/Gateway"
) {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.gen(function* () {
      const keeper = yield* keeping
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
              if (key !== undefined) handshake.accept((socket) => keeper.serve(key, socket))
            })
          )
        },
        drain: () => {
          isDraining = true
          keeper.pulse.sayGoodbye()
        }
      }
      return Gateway.of({ route })
    })
  )
}

/** Keeps the sockets: greets them, looks after them, and is a home for those that others relay. */
const keeping = Effect.gen(function* () {
  const greeting = yield* Greeting
  const homes = yield* SessionHomes
  const sessions = yield* AgentSessions
  const keys = yield* Keys
  const { limits } = yield* AppConfig
  const fork = Effect.runForkWith(yield* Effect.context<never>())

  const end = (session: AgentSession) => fork(sessions.end(session, "client_bye"))
  const revoked = (socket: ClientSocket) => {
    if (socket.session !== undefined && socket.isAttached) fork(sessions.end(socket.session, "revoked"))
    else refuse(socket.sink, "not_owner", "The key is not valid any more", closeCodes.revoked)
  }
  const pulse = new Pulse((keyId) => keys.holder(keyId) !== undefined, revoked)
  const keeper: SocketKeeper = {
    framesPerSecond: limits.agentFramesPerSecond,
    second: () => pulse.second,
    nowMillis: () => performance.now(),
    greet: (socket, hello, text) => {
      pulse.greeted(socket)
      fork(greet(greeting, homes, socket, hello, text))
    },
    end: (session) => void end(session),
    left: (socket) => pulse.remove(socket)
  }
  const serve = (key: Principal, sink: ClientSocket["sink"]) => {
    const socket = new ClientSocket(keeper, key, sink)
    pulse.add(socket)
    return socket
  }
  yield* homes.open({
    serve,
    end: (sessionId) =>
      Effect.flatMap(Effect.orDie(sessions.acquire(sessionId)), (session) =>
        session === undefined ? Effect.void : sessions.end(session, "ended_by_owner")
      ),
    leave: (isGone) =>
      Effect.forEach(
        [...sessions.all()].filter(({ facts }) => isGone(facts.id)),
        (session) => sessions.leave(session),
        { discard: true }
      )
  })
  const tick = Effect.sync(() => pulse.tick(performance.now(), Date.now()))
  yield* Effect.forkScoped(Effect.repeat(tick, Schedule.spaced(1_000)))
  return { pulse, serve }
})

/** Attaches the client here, or relays it to where its session is at home. */
const greet = (
  greeting: Greeting["Service"],
  homes: SessionHomes["Service"],
  socket: ClientSocket,
  hello: Hello,
  text: string
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (hello.resume !== undefined && !homes.isHere(hello.resume)) {
      const there = yield* homes.serveThere(hello.resume, socket.key, socket.sink)
      there.received(text)
      return socket.relayed(there)
    }
    const refusal = yield* greeting.greet(socket, hello)
    if (refusal === undefined) return
    const { closeCode, code, message, retryAfterMs } = refusal
    refuse(socket.sink, code, message, closeCode, retryAfterMs === undefined ? {} : { retryAfterMs })
  }).pipe(
    Effect.catchTag("HomeAway", () => Effect.sync(() => sayLater(socket))),
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logError("A hello failed", cause),
        Effect.sync(() => refuse(socket.sink, "internal", "The server could not do this"))
      )
    )
  )

const sayLater = (socket: ClientSocket): void =>
  refuse(socket.sink, "overloaded", "The session is on its way to another machine", closeCodes.restart, {
    retryAfterMs: 1_000
  })

/** Lets in who may have sessions; everybody else is answered in plain HTTP. */
const entering = Effect.gen(function* () {
  const gate = yield* KeyGate
  const offer = yield* AgentOffer
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
