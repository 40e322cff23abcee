import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type ClaimedSession,
  type NotOwner,
  StepStore,
  StepStoreAway,
  type TooManySessions
} from "#actors/agents/StepStore.ts"
import { AppConfig } from "#src/Config.ts"
import { Processes } from "#src/infra/processes/Processes.ts"
import * as BatchQueue from "./BatchQueue.ts"
import { type ClaimAsk, claimsOf } from "./SessionClaims.ts"
import { type NewSession, SessionCreates } from "./SessionCreates.ts"
import { encode, type EncodedWrite, SessionWrites } from "./SessionWrites.ts"
import { readAnnounced, readRecent } from "./StepReads.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

/**
 * Sessions and steps in Postgres. Asks of one moment go there in one statement, one of each kind at a time: 19,000
 * clients that come back at once are 38 statements, and a step costs a fraction of one.
 */
export const layer = Layer.effect(
  StepStore,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const { limits } = yield* AppConfig
    const { id: owner } = yield* Processes
    const creates = new SessionCreates(sql, owner, limits)
    const claims = claimsOf(sql, owner, limits)
    const away = (cause: BatchQueue.BatchFailure) => new StepStoreAway({ cause })
    const bounds = { maxAsks: limits.agentBatchSessions, maxBytes: limits.agentBatchBytes, everyMillis: 0 }
    const bounded = <A, E>(effect: Effect.Effect<A, E>) => abandonedAfter(effect, limits.agentStoreMillis)
    /** One read for one session, at once. */
    const read = <A>(effect: Effect.Effect<A, SqlError>) => Effect.mapError(bounded(effect), away)

    const creating = yield* BatchQueue.make<NewSession, void, TooManySessions | StepStoreAway>({
      ...bounds,
      run: (asks: ReadonlyArray<NewSession>) => bounded(creates.run(asks)),
      away,
      bytesOf: () => 0,
      onAbandon: creates.abandon
    })
    const claiming = yield* BatchQueue.make<ClaimAsk, ClaimedSession | undefined, NotOwner | StepStoreAway>({
      ...bounds,
      run: (asks) => bounded(claims(asks)),
      away,
      bytesOf: () => 0,
      onAbandon: () => undefined
    })
    const writing = yield* BatchQueue.make({
      ...bounds,
      everyMillis: limits.agentBatchEveryMillis,
      run: new SessionWrites(sql, limits).run,
      bytesOf: ({ bytes }: EncodedWrite) => bytes
    })
    // The last writes of sessions.
    yield* Effect.addFinalizer(() =>
      Effect.catch(bounded(writing.idle), () => Effect.logWarning("Steps were lost: Postgres is away"))
    )

    return StepStore.of({
      create: (facts, state) => creating.ask({ facts, state }),
      claim: (sessionId, userId) => claiming.ask({ sessionId, userId }),
      write: (write) => Effect.suspend(() => writing.ask(encode(write))),
      steps: (id, from) =>
        read(
          Effect.map(readRecent(sql, [{ id, from }], limits.agentBatchBytes), (steps) => steps.get(id) ?? [])
        ),
      announced: (id, afterSeq, toSeq) => read(readAnnounced(sql, { id, afterSeq, toSeq }))
    })
  })
)
