import type { Worker } from "node:worker_threads"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { startThread, type ThreadData } from "#src/analytics/store/EventSinkClient.ts"
import * as ThreadedEventSink from "#src/analytics/store/ThreadedEventSink.ts"
import { range, storedSeqs, view } from "./SinkBatches.ts"
import { visitsByDefinition, visitsInStore } from "./VisitOracle.ts"

/** Each minute's event, of one of five visitors. */
export const views = (from: number, to: number): ReadonlyArray<StoredEvent> =>
  Array.from({ length: to - from }, (_, index) =>
    view(from + index, { visitor: BigInt((from + index) % 5) + 1n })
  )

/** The first so many events of the log are there once, and visits are what they say. */
export const assertStored = Effect.fnUntraced(function* (to: number) {
  assert.deepStrictEqual(yield* storedSeqs, range(0, to))
  assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
})

/** A sink whose thread can be ended, and the sites that it noted. */
export const stage = Effect.gen(function* () {
  const threads: Array<Worker> = []
  const sites: Array<string> = []
  const sink = yield* ThreadedEventSink.make(
    (site) => void sites.push(site),
    (data: ThreadData) => {
      const thread = startThread(data)
      threads.push(thread)
      return thread
    }
  )
  const end = Effect.promise(async () => threads.at(-1)?.terminate())
  return { sink, sites, threads, end }
})
