import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SessionFacts, SessionRecord, SessionState } from "#streams/agents/SessionRecord.ts"
import type { Step } from "#streams/agents/Step.ts"

/** Another process owns the session now, or it was deleted; nothing was written. */
export class OwnershipLost extends Schema.TaggedError<OwnershipLost>()("OwnershipLost", {
  sessionId: Schema.String
}) {}

/** The session belongs to another user: nothing was done to it. */
export class NotOwner extends Schema.TaggedError<NotOwner>()("NotOwner", {
  sessionId: Schema.String
}) {}

/** The key has as many live sessions as it may. */
export class TooManySessions extends Schema.TaggedError<TooManySessions>()("TooManySessions", {
  keyId: Schema.String,
  live: Schema.Int
}) {}

/** The store does not answer. Nothing was done that a second try would double. */
export class StepStoreAway extends Schema.TaggedError<StepStoreAway>()("StepStoreAway", {
  cause: Schema.Defect()
}) {}

/** A session that this process owns from now on. */
export interface ClaimedSession extends SessionRecord {
  /** the last number that an earlier owner may have given to a frame; `state.seqReserved` is above it already */
  readonly seqUsed: number
  /** those from `state.baseStep` on, in order */
  readonly recent: ReadonlyArray<Step>
}

export interface SessionWrite {
  readonly sessionId: string
  readonly epoch: number
  readonly state: SessionState
  readonly steps: ReadonlyArray<Step>
}

/**
 * Sessions and their steps, for their owners. Simultaneous requests of many sessions go to the store together; the
 * order of the writes of one session is kept.
 */
export class StepStore extends Context.Service<
  StepStore,
  {
    /** A new session, owned by this process with epoch 1. */
    readonly create: (
      facts: SessionFacts,
      state: SessionState
    ) => Effect.Effect<void, TooManySessions | StepStoreAway>
    /**
     * Makes this process the owner. undefined: there is none, or it can not be resumed any more.
     * @param userId who asks for it; absent: the server itself does
     */
    readonly claim: (
      sessionId: string,
      userId?: string
    ) => Effect.Effect<ClaimedSession | undefined, NotOwner | StepStoreAway>
    /** Durable when it returns. While the store is away it waits and tries again; a repeated write changes nothing. */
    readonly write: (write: SessionWrite) => Effect.Effect<void, OwnershipLost>
    /** Steps from one on, in order. */
    readonly steps: (
      sessionId: string,
      fromIndex: number
    ) => Effect.Effect<ReadonlyArray<Step>, StepStoreAway>
    /** Steps whose `seq` is above one and at most another, in order. */
    readonly announced: (
      sessionId: string,
      afterSeq: number,
      toSeq: number
    ) => Effect.Effect<ReadonlyArray<Step>, StepStoreAway>
  }
>()("signalbox/agents/StepStore") {}
