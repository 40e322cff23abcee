/**
 * State: the sessions that this process owns, by id, and the runs of those that work on a prompt.
 * Messages: none; a service of plain calls. Sessions are rows of one table, because there may be tens of thousands.
 * Limits: `agentSessions` in memory; a session without a client for `agentLiveMillis` is dropped.
 * Restart policy: a run that crashes is restarted by itself; see PromptRun.
 * In a crash sessions are loaded again when their client comes back, or another process adopts their prompt.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { Conversation } from "#streams/agents/Conversation.ts"
import type { EndReason, SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import { AgentSession, type SessionLimits, type SessionParts } from "./AgentSession.ts"
import { ModelCalls } from "./ModelCalls.ts"
import * as PromptRun from "./PromptRun.ts"
import {
  type ClaimedSession,
  NotOwner,
  StepStore,
  type StepStoreAway,
  type TooManySessions
} from "./StepStore.ts"

interface AgentSessionsOptions {
  readonly limits: SessionLimits &
    PromptRun.RunLimits & {
      readonly agentSessions: number
      readonly agentLiveMillis: number
      readonly agentRingBytes: number
      readonly agentCoalesceBytes: number
      readonly agentSlowBytes: number
    }
  readonly newId: (prefix: string) => string
}

/** This process has as many sessions in memory as it may. */
export class SessionsFull extends Schema.TaggedError<SessionsFull>()("SessionsFull", {}) {}

export class AgentSessions extends Context.Service<
  AgentSessions,
  {
    readonly create: (
      facts: SessionFacts,
      state: SessionState
    ) => Effect.Effect<AgentSession, TooManySessions | StepStoreAway | SessionsFull>
    /**
     * From memory, or else from the store, which makes this process its owner. undefined: it cannot be resumed.
     * @param userId who asks for it; absent: the server itself does
     */
    readonly acquire: (
      sessionId: string,
      userId?: string
    ) => Effect.Effect<AgentSession | undefined, NotOwner | StepStoreAway | SessionsFull>
    readonly peek: (sessionId: string) => AgentSession | undefined
    readonly all: () => IterableIterator<AgentSession>
    /** Its client is sent away, its prompt aborted, and it is over. */
    readonly end: (session: AgentSession, reason: EndReason) => Effect.Effect<void>
    /** Drops a session that this process no longer owns; its client reconnects to the owner. */
    readonly leave: (session: AgentSession) => Effect.Effect<void>
    /** Lets go of what has been detached for long, and of what idle sessions do not need. */
    readonly sweep: Effect.Effect<void>
  }
>()("signalbox/agents/AgentSessions") {
  static readonly layer = (options: AgentSessionsOptions) =>
    Layer.effect(
      AgentSessions,
      Effect.gen(function* () {
        const table = new SessionTable(options, {
          store: yield* StepStore,
          models: yield* ModelCalls,
          clock: yield* Clock.Clock,
          fork: Effect.runForkWith(yield* Effect.context<never>()),
          runs: yield* FiberMap.make<string>()
        })
        yield* Effect.addFinalizer(() => table.letGoAll)
        return AgentSessions.of({
          create: (facts, state) => table.create(facts, state),
          acquire: (sessionId, userId) => table.acquire(sessionId, userId),
          peek: (sessionId) => table.sessions.get(sessionId),
          all: () => table.sessions.values(),
          end: (session, reason) => table.end(session, reason),
          leave: (session) => table.leave(session),
          sweep: Effect.suspend(() => table.sweep())
        })
      })
    )
}

/** The time a stopping server gives its sessions to be written. */
const letGoMillis = 5_000

/** Sessions that are let go side by side: their writes share statements. */
const letGoTogether = 64

/** The pause before a redirected client reconnects, so that the new owner is ready. */
const movedRetryMillis = 200

/** The close codes and reasons of ended sessions. Source: contract/agents#close-codes. */
const endings = {
  client_bye: { bye: "client_bye", code: closeCodes.normal },
  ended_by_owner: { bye: "ended", code: closeCodes.normal },
  expired: { bye: "ended", code: closeCodes.normal },
  revoked: { bye: "revoked", code: closeCodes.revoked },
  error: { bye: "ended", code: closeCodes.normal }
} as const

interface TableParts {
  readonly store: StepStore["Service"]
  readonly models: ModelCalls["Service"]
  readonly clock: Clock.Clock
  readonly fork: (effect: Effect.Effect<void>) => void
  readonly runs: FiberMap.FiberMap<string>
}

class SessionTable {
  readonly sessions = new Map<string, AgentSession>()
  readonly #options: AgentSessionsOptions
  readonly #parts: TableParts
  readonly #sessionParts: SessionParts
  /** claims under way; simultaneous callers get the same session */
  readonly #claims = new Map<string, Effect.Effect<AgentSession | undefined, NotOwner | StepStoreAway>>()

  constructor(options: AgentSessionsOptions, parts: TableParts) {
    this.#options = options
    this.#parts = parts
    const { clock, fork, store } = parts
    const { limits } = options
    this.#sessionParts = {
      limits,
      outboxLimits: {
        ringBytes: limits.agentRingBytes,
        coalesceBytes: limits.agentCoalesceBytes,
        slowBytes: limits.agentSlowBytes
      },
      now: () => clock.currentTimeMillisUnsafe(),
      write: store.write,
      fork,
      work: (session) => this.#work(session),
      lost: (session) => fork(this.leave(session))
    }
  }

  create(facts: SessionFacts, state: SessionState) {
    return Effect.gen({ self: this }, function* () {
      if (this.#isFull) return yield* new SessionsFull({})
      const reserved = { ...state, seqReserved: this.#options.limits.agentSeqReserve }
      yield* this.#parts.store.create(facts, reserved)
      const session = new AgentSession(this.#sessionParts, facts, reserved, { epoch: 1, seq: 0, steps: 0 })
      this.sessions.set(facts.id, session)
      return session
    })
  }

  acquire(
    sessionId: string,
    userId?: string
  ): Effect.Effect<AgentSession | undefined, NotOwner | StepStoreAway | SessionsFull> {
    return Effect.suspend(() => {
      const known = this.sessions.get(sessionId)
      if (known !== undefined && !known.isLost) return ownedBy(known, userId)
      const claim = this.#claims.get(sessionId)
      // A refusal to another user does not answer this one.
      if (claim !== undefined)
        return Effect.flatMap(
          Effect.catchTag(claim, "NotOwner", () => this.acquire(sessionId, userId)),
          (session) => ownedBy(session, userId)
        )
      if (this.#isFull) return Effect.fail(new SessionsFull({}))
      const claimed = Effect.ensuring(
        this.#claim(sessionId, userId),
        Effect.sync(() => this.#claims.delete(sessionId))
      )
      return Effect.flatMap(Effect.cached(claimed), (claiming) => {
        this.#claims.set(sessionId, claiming)
        return claiming
      })
    })
  }

  end(session: AgentSession, reason: EndReason): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const { bye, code } = endings[reason]
      session.isEnding = true
      if (session.active !== undefined) {
        // Open requests expect no answer any more.
        session.dismiss(bye, code)
        session.abort(true)
        const run = Option.getOrUndefined(FiberMap.getUnsafe(this.#parts.runs, session.facts.id))
        if (run !== undefined)
          yield* Effect.timeoutOption(Fiber.await(run), this.#options.limits.agentCancelMillis * 2)
      }
      const now = this.#parts.clock.currentTimeMillisUnsafe()
      const seen = { lastSeenAt: now, detachedAt: now, seqReserved: session.outbox.seq }
      yield* session.record([], { status: "ended", endedAt: now, endReason: reason, ...seen })
      session.dismiss(bye, code)
      yield* this.leave(session)
    })
  }

  leave(session: AgentSession): Effect.Effect<void> {
    return Effect.suspend(() => {
      session.isLost = true
      session.dismiss("moved", closeCodes.restart, movedRetryMillis)
      // It may be here again, under a newer epoch: that one's run is not to be touched.
      if (!this.#has(session)) return Effect.void
      this.#forget(session)
      return FiberMap.remove(this.#parts.runs, session.facts.id)
    })
  }

  sweep(): Effect.Effect<void> {
    const before = this.#parts.clock.currentTimeMillisUnsafe() - this.#options.limits.agentLiveMillis
    const isGone = ({ client, isAnswering, state }: AgentSession) =>
      client === undefined && !isAnswering && state.detachedAt !== null && state.detachedAt < before
    for (const session of this.sessions.values()) session.rest()
    // Its client may be back by the time that it is its turn.
    const letGo = (session: AgentSession) =>
      Effect.suspend(() => (isGone(session) ? this.#letGo(session) : Effect.void))
    return Effect.forEach([...this.sessions.values()].filter(isGone), letGo, {
      concurrency: letGoTogether,
      discard: true
    })
  }

  /** When the server ends in peace its sessions go on elsewhere without a gap. */
  readonly letGoAll: Effect.Effect<void> = Effect.suspend(() =>
    Effect.timeoutOrElse(
      Effect.forEach([...this.sessions.values()], (session) => this.#letGo(session), {
        concurrency: "unbounded",
        discard: true
      }),
      {
        duration: letGoMillis,
        orElse: () => Effect.logWarning(`${this.sessions.size} sessions were not let go in time`)
      }
    )
  )

  /** Numbers that were reserved and not used are given back, so that the next owner has no gap to tell of. */
  #letGo(session: AgentSession): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      this.#forget(session)
      yield* FiberMap.remove(this.#parts.runs, session.facts.id)
      yield* session.record([], { seqReserved: session.outbox.seq })
      session.isLost = true
    })
  }

  #claim(
    sessionId: string,
    userId: string | undefined
  ): Effect.Effect<AgentSession | undefined, NotOwner | StepStoreAway> {
    return Effect.map(this.#parts.store.claim(sessionId, userId), (claimed) => {
      if (claimed === undefined) return undefined
      const session = this.#load(claimed)
      this.sessions.set(sessionId, session)
      if (session.active !== undefined) this.#work(session)
      return session
    })
  }

  #load({ epoch, facts, recent, seqUsed, state, steps }: ClaimedSession): AgentSession {
    const session = new AgentSession(this.#sessionParts, facts, state, { epoch, seq: seqUsed, steps })
    session.restore(new Conversation(recent))
    return session
  }

  #work(session: AgentSession): void {
    const { limits, newId } = this.#options
    const { fork, models, runs, store } = this.#parts
    if (session.isWorking) return
    session.isWorking = true
    const run = Effect.ensuring(
      PromptRun.work(session, { limits, models, store, newId }),
      Effect.sync(() => {
        session.isWorking = false
        // Prompts that arrived as the run ended start a new one, unless the session was dropped meanwhile.
        if (session.active !== undefined && !session.isLost && this.#has(session)) this.#work(session)
      })
    )
    fork(Effect.asVoid(FiberMap.run(runs, session.facts.id, run)))
  }

  #has(session: AgentSession): boolean {
    return this.sessions.get(session.facts.id) === session
  }

  #forget(session: AgentSession): void {
    if (this.#has(session)) this.sessions.delete(session.facts.id)
  }

  get #isFull(): boolean {
    return this.sessions.size >= this.#options.limits.agentSessions
  }
}

const ownedBy = (
  session: AgentSession | undefined,
  userId: string | undefined
): Effect.Effect<AgentSession | undefined, NotOwner> =>
  session === undefined || userId === undefined || session.facts.userId === userId
    ? Effect.succeed(session)
    : Effect.fail(new NotOwner({ sessionId: session.facts.id }))
