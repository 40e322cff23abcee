import type { OwnedVisitEvent } from "#streams/analytics/VisitEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import type { Lane } from "./VisitUpdate.ts"

interface TriedTurn {
  /** of the lease; undefined: there was none */
  readonly epoch: number | undefined
  readonly events: ReadonlyArray<OwnedVisitEvent>
}

/** The batch of a lane that is being written, for when it is repeated. */
export class SinkLane {
  readonly name: Lane
  /** the events of each turn that was tried: the same rows under the same token, whatever was learnt in between */
  readonly tried = new Map<string, TriedTurn>()
  /** turns that are in the store, and in its visits */
  readonly done = new Set<string>()
  /** a turn before waits to be repeated */
  isWaiting = false
  readonly #cut: (batch: SinkBatch) => ReadonlyArray<SinkBatch>
  #token: string | undefined

  constructor(name: Lane, cut: (batch: SinkBatch) => ReadonlyArray<SinkBatch>) {
    this.name = name
    this.#cut = cut
  }

  /** What is known of a batch before is forgotten. */
  turnsOf(batch: SinkBatch): ReadonlyArray<SinkBatch> {
    if (this.#token !== batch.token) this.clear()
    this.#token = batch.token
    return this.#cut(batch)
  }

  clear(): void {
    this.#token = undefined
    this.tried.clear()
    this.done.clear()
  }
}
