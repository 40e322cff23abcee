import { Context, Effect, Layer, Schedule } from "effect"
import type { AgentSession } from "#actors/agents/AgentSession.ts"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import type { Hello } from "#schemas/agents/ClientFrame.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { AppConfig } from "#src/Config.ts"
import { type Serve, SessionPlacement } from "../SessionPlacement.ts"
import { ClientSocket, type SocketKeeper } from "./ClientSocket.ts"
import { refuse } from "./CloseFrames.ts"
import { makeHelloHandler } from "./HelloHandler.ts"
import { Heartbeat } from "./Heartbeat.ts"

/** All sockets of agents: greets them, checks them, and is a home for the sockets that other machines relay. */
export class Sockets extends Context.Service<
  Sockets,
  {
    readonly serve: Serve
    /** The server ends: clients come back. */
    readonly sayGoodbye: () => void
  }
>()("signalbox/agents/Sockets") {
  static readonly layer = Layer.effect(
    Sockets,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const answerHello = yield* makeHelloHandler
  const homes = yield* SessionPlacement
  const sessions = yield* AgentSessions
  const credentials = yield* Credentials
  const { limits } = yield* AppConfig
  const fork = Effect.runForkWith(yield* Effect.context<never>())

  const end = (session: AgentSession) => fork(sessions.end(session, "client_bye"))
  const revoked = (socket: ClientSocket) => {
    const { session } = socket
    if (session !== undefined && socket.isAttached) {
      // Asked again every second, until it has ended.
      if (!session.isEnding) fork(sessions.end(session, "revoked"))
    } else refuse(socket.sink, "not_owner", "The key is not valid any more", closeCodes.revoked)
  }
  const pulse = new Heartbeat((id) => credentials.holder(id) !== undefined, revoked)
  const keeper: SocketKeeper = {
    framesPerSecond: limits.agentFramesPerSecond,
    bytesPerSecond: limits.agentBytesPerSecond,
    second: () => pulse.second,
    // Whole ones are kept in the socket itself; a number with a fraction would be an object beside it.
    nowMillis: () => Math.trunc(performance.now()),
    greet: (socket, hello, text) => {
      pulse.greeted(socket)
      fork(greet(answerHello, homes, socket, hello, text))
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
  // A fault at the socket of one client must not stop the heartbeat of all.
  const tick = Effect.catchCause(
    Effect.sync(() => pulse.tick(performance.now(), Date.now())),
    (cause) => Effect.logError("Agents' sockets could not be looked after", cause)
  )
  yield* Effect.forkScoped(Effect.repeat(tick, Schedule.spaced(1_000)))
  return Sockets.of({ serve, sayGoodbye: () => pulse.sayGoodbye() })
})

/** Attaches the client here, or relays it to its session's home. */
const greet = (
  answerHello: Effect.Success<typeof makeHelloHandler>,
  homes: SessionPlacement["Service"],
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
    const refusal = yield* answerHello(socket, hello)
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
