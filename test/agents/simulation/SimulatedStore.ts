import { Effect } from "effect"
import { NotOwner, OwnershipLost, type StepStore, StepStoreAway } from "#actors/agents/StepStore.ts"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import type { Step } from "#streams/agents/Step.ts"

interface StoredSession {
  readonly facts: SessionFacts
  state: SessionState
  epoch: number
  steps: ReadonlyArray<Step>
}

/** The database, over the lives of servers. */
export class SimulatedDatabase {
  readonly sessions = new Map<string, StoredSession>()
  /** writes so far, of all servers */
  writes = 0
  /** Called with the number of each write, before and after it is done: a server may die here. */
  onWrite: (write: number, when: "before" | "after") => void = () => undefined
}

/** The store as one server sees it. Once the server is dead nothing of it reaches the database any more. */
export const storeOf = (database: SimulatedDatabase, isDead: () => boolean): StepStore["Service"] => {
  const gone = () => Effect.fail(new StepStoreAway({ cause: "the server is dead" }))
  const soon = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
  const steps = (sessionId: string, is: (step: Step) => boolean) =>
    Effect.andThen(
      soon,
      Effect.suspend(() =>
        isDead() ? gone() : Effect.succeed((database.sessions.get(sessionId)?.steps ?? []).filter(is))
      )
    )
  return {
    create: (facts, state) =>
      Effect.suspend(() => {
        if (isDead()) return gone()
        database.sessions.set(facts.id, { facts, state, epoch: 1, steps: [] })
        return soon
      }),
    claim: (sessionId, userId) =>
      Effect.andThen(
        soon,
        Effect.suspend((): ReturnType<StepStore["Service"]["claim"]> => {
          const session = database.sessions.get(sessionId)
          if (isDead()) return gone()
          if (session === undefined) return Effect.succeed(undefined)
          if (userId !== undefined && userId !== session.facts.userId)
            return Effect.fail(new NotOwner({ sessionId }))
          session.epoch++
          const seqUsed = session.state.seqReserved
          const { detachedAt, lastSeenAt } = session.state
          session.state = {
            ...session.state,
            seqReserved: seqUsed + 200,
            // A client that asks is noted as attached at once.
            detachedAt: userId === undefined ? (detachedAt ?? lastSeenAt) : null
          }
          const { epoch, facts, state } = session
          const recent = session.steps.filter(({ index }) => index >= state.baseStep)
          return Effect.succeed({ facts, state, epoch, steps: session.steps.length, seqUsed, recent })
        })
      ),
    write: (write) =>
      Effect.andThen(
        soon,
        Effect.suspend(() => {
          const lost = Effect.fail(new OwnershipLost({ sessionId: write.sessionId }))
          const number = ++database.writes
          if (!isDead()) database.onWrite(number, "before")
          const session = database.sessions.get(write.sessionId)
          if (isDead() || session === undefined || session.epoch !== write.epoch) return lost
          session.state = write.state
          session.steps = [...session.steps, ...write.steps]
          database.onWrite(number, "after")
          return isDead() ? lost : Effect.void
        })
      ),
    steps: (sessionId, fromIndex) => steps(sessionId, ({ index }) => index >= fromIndex),
    announced: (sessionId, afterSeq, toSeq) => steps(sessionId, ({ seq }) => seq > afterSeq && seq <= toSeq)
  }
}
