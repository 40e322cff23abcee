import { Context, Effect, Layer, Schema } from "effect"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"

/** The session's home cannot be reached: its process died, or is being replaced. */
export class HomeAway extends Schema.TaggedError<HomeAway>()("HomeAway", {
  sessionId: Schema.String
}) {}

/** Serves a client: takes its frames, the hello first. */
export type Serve = (key: Principal, sink: FrameSink) => HotSocketListener

/** The interface of a process as a home of sessions. */
export interface LocalHome {
  readonly serve: Serve
  readonly end: (sessionId: string) => Effect.Effect<void>
  /** Sessions for which this answers true belong to other processes from now on. */
  readonly leave: (isGone: (sessionId: string) => boolean) => Effect.Effect<void>
}

/**
 * Finds the home of a session: the only process that may have it in memory. On one machine, this one. A new session's
 * id is chosen so that its home is where its client is; a client that comes back elsewhere is relayed.
 */
export class SessionPlacement extends Context.Service<
  SessionPlacement,
  {
    readonly isHere: (sessionId: string) => boolean
    /**
     * Serves a client at the session's home: frames go there, and come back to `sink`. When the home dies or the session
     * moves, the sink is closed with 1012, and the client comes again.
     */
    readonly serveThere: (
      sessionId: string,
      key: Principal,
      sink: FrameSink
    ) => Effect.Effect<HotSocketListener, HomeAway>
    /** Ends a session of another home, at its owner's request. */
    readonly endThere: (sessionId: string) => Effect.Effect<void, HomeAway>
    /** Makes this process a home for clients of others; called once, by the gateway. */
    readonly open: (home: LocalHome) => Effect.Effect<void>
    /** This process begins to drain: no session's home is here from now on, and the others take over at once. */
    readonly depart: Effect.Effect<void>
  }
>()("signalbox/agents/SessionPlacement") {
  /** One process alone. */
  static readonly layerAlone = Layer.succeed(SessionPlacement, {
    isHere: () => true,
    serveThere: (sessionId) => Effect.fail(new HomeAway({ sessionId })),
    endThere: (sessionId) => Effect.fail(new HomeAway({ sessionId })),
    open: () => Effect.void,
    depart: Effect.void
  })
}
