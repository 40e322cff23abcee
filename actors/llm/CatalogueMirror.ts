/**
 * State: the last good list of the upstream's models, and how the last try to fetch it went (one actor).
 * Messages: `refresh` fetches now; the actor's own fiber does so at the start, then every `refreshMillis`.
 * Limits: see `CatalogueMirrorOptions`; one fetch at a time. A list that is of no use never replaces one that is.
 * Restart policy: the kernel's; a failed fetch is no crash, it is tried again after a pause that doubles.
 * In a crash nothing is lost: the list is kept beside the actor's lives, and a copy of it for the next process.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SampledMetrics from "../kernel/SampledMetrics.ts"
import * as Supervisor from "../kernel/Supervisor.ts"
import { CatalogueCopies, type CatalogueCopy } from "./CatalogueCopies.ts"
import { CatalogueSource, CatalogueUnavailable } from "./CatalogueSource.ts"
import { readUpstreamList, type UpstreamList } from "#streams/llm/UpstreamList.ts"

export interface CatalogueMirrorOptions {
  readonly refreshMillis: number
  /** pause after the first failure, doubled up to `retryMaxMillis` */
  readonly retryMinMillis: number
  readonly retryMaxMillis: number
  /** how long `make` waits for the first fetch to end, well or not */
  readonly startMillis: number
}

export interface MirroredList extends UpstreamList {
  readonly fetchedAt: Date
}

/** The state of the catalogue, for /readyz and /metrics. */
export interface CatalogueStatus {
  readonly models: number
  /** models of the list that make no sense */
  readonly leftOut: number
  /** undefined: there has never been a list */
  readonly fetchedAt: Date | undefined
  /** the last fetch failed, or none has ended: the served list is older than it should be */
  readonly isStale: boolean
  /** why */
  readonly problem?: string
}

export interface CatalogueMirror {
  readonly current: () => MirroredList | undefined
  readonly status: () => CatalogueStatus
  /** Fetches the list now. */
  readonly refresh: Effect.Effect<void, CatalogueUnavailable>
}

/** The state that outlives the actor. */
interface Known {
  list: MirroredList | undefined
  problem: string | undefined
  fetches: number
  failures: number
}

/** A mirror of the upstream's list. Returns once the first fetch has ended, or after `startMillis`. */
export const make = Effect.fnUntraced(function* (
  options: CatalogueMirrorOptions
): Effect.fn.Return<CatalogueMirror, never, CatalogueSource | CatalogueCopies | Scope.Scope> {
  const known: Known = { list: undefined, problem: "it has not been fetched yet", fetches: 0, failures: 0 }
  const firstTry = yield* Deferred.make<void>()
  const attempt = yield* makeAttempt(known)
  const refreshForEver = Effect.gen(function* () {
    let pauseMillis = options.retryMinMillis
    while (true) {
      const isSettled = yield* attempt
      yield* Deferred.succeed(firstTry, undefined)
      yield* Effect.sleep(isSettled ? options.refreshMillis : pauseMillis)
      pauseMillis = isSettled ? options.retryMinMillis : Math.min(pauseMillis * 2, options.retryMaxMillis)
    }
  })
  const refresh = Effect.flatMap(attempt, () =>
    known.problem === undefined
      ? Effect.void
      : Effect.fail(new CatalogueUnavailable({ problem: known.problem }))
  )
  const supervisor = yield* Supervisor.make({
    name: "catalogue-mirror",
    build: (_key: "catalogue", self) =>
      Effect.as(self.fork(refreshForEver), { state: known, handlers: { refresh: () => refresh } })
  })
  const start = Effect.exit(supervisor.acquire("catalogue"))
  yield* start
  // An abandoned one is started again: no other caller would.
  yield* Effect.forkScoped(Effect.forever(Effect.delay(start, options.retryMaxMillis)))
  yield* Effect.timeoutOption(Deferred.await(firstTry), options.startMillis)
  const status = statusOf(known)
  yield* SampledMetrics.register(samples(known, status, yield* Clock.Clock))
  return {
    current: () => known.list,
    status,
    refresh: Effect.catchIf(
      supervisor.ask("catalogue", "refresh"),
      (error) => error._tag !== "CatalogueUnavailable",
      (error) => Effect.fail(new CatalogueUnavailable({ problem: `its mirror is down (${error._tag})` }))
    )
  }
})

/** One try, one at a time: true where the list is fetched and kept, so that nothing is to be done for a while. */
const makeAttempt = Effect.fnUntraced(function* (known: Known) {
  const source = yield* CatalogueSource
  const copies = yield* CatalogueCopies
  const oneAtATime = yield* Semaphore.make(1)
  const log = sayOnce()

  /** The list and its problem change together: a reader of one finds the other. */
  const take = (copy: CatalogueCopy, problem: string | undefined) =>
    Effect.gen(function* () {
      const list = readUpstreamList(copy.body)
      if (Result.isFailure(list)) return yield* new CatalogueUnavailable({ problem: list.failure })
      known.list = { ...list.success, fetchedAt: copy.fetchedAt }
      known.problem = problem
      yield* log.leftOut(list.success)
    })

  const keep = (copy: CatalogueCopy) =>
    Effect.matchEffect(copies.keep(copy), {
      onSuccess: () => Effect.as(log.keeping(undefined), true),
      onFailure: ({ problem }) => Effect.as(log.keeping(problem), false)
    })

  /** Takes the list that this process kept in an earlier life, or that another one has fetched meanwhile. */
  const takeKept = Effect.matchEffect(
    Effect.flatMap(
      Effect.suspend(() => copies.newerThan(known.list?.fetchedAt)),
      (copy) => (copy === undefined ? Effect.void : take(copy, known.problem))
    ),
    { onSuccess: () => Effect.void, onFailure: ({ problem }) => log.keeping(problem) }
  )

  const fetchAndKeep = Effect.gen(function* () {
    const body = yield* source.fetch
    const copy = { body, fetchedAt: new Date(yield* Clock.currentTimeMillis) }
    yield* take(copy, undefined)
    return yield* keep(copy)
  })

  return oneAtATime.withPermits(1)(
    Effect.gen(function* () {
      known.fetches++
      if (known.list === undefined) yield* takeKept
      const outcome = yield* Effect.result(fetchAndKeep)
      known.problem = Result.isFailure(outcome) ? outcome.failure.problem : undefined
      yield* log.problem(known.problem, known.list)
      if (Result.isSuccess(outcome)) return outcome.success
      known.failures++
      yield* takeKept
      return false
    })
  )
})

/** An outage of hours is one line in the log, and its end another. */
const sayOnce = () => {
  const said = { problem: "", leftOut: "", keeping: "" }
  const change = (about: keyof typeof said, text: string, say: Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (said[about] === text) return Effect.void
      said[about] = text
      return say
    })
  return {
    problem: (problem: string | undefined, list: MirroredList | undefined) => {
      const served =
        list === undefined
          ? "there is none from before"
          : `${list.models.length} models of ${list.fetchedAt.toISOString()} are served`
      return change(
        "problem",
        problem ?? "",
        problem === undefined
          ? Effect.logInfo("The upstream's list of models is up to date again")
          : Effect.logWarning(`The upstream's list of models cannot be fetched: ${problem}; ${served}`)
      )
    },
    leftOut: ({ firstFault, leftOut, models }: UpstreamList) =>
      change(
        "leftOut",
        leftOut === 0 ? "" : `${leftOut} ${firstFault}`,
        leftOut === 0
          ? Effect.logInfo("Every model of the upstream's list makes sense again")
          : Effect.logWarning(
              `${leftOut} models of the upstream's list are left out, ${models.length} are there; ${firstFault}`
            )
      ),
    keeping: (problem: string | undefined) =>
      change(
        "keeping",
        problem ?? "",
        problem === undefined
          ? Effect.logInfo("The list of models is kept again")
          : Effect.logWarning(`The kept list of models is out of reach: ${problem}`)
      )
  }
}

const statusOf = (known: Known) => (): CatalogueStatus => ({
  models: known.list?.models.length ?? 0,
  leftOut: known.list?.leftOut ?? 0,
  fetchedAt: known.list?.fetchedAt,
  isStale: known.problem !== undefined,
  ...(known.problem === undefined ? {} : { problem: known.problem })
})

const samples = (
  known: Known,
  status: () => CatalogueStatus,
  clock: Clock.Clock
): ReadonlyArray<SampledMetrics.Sample> => [
  ["signalbox_catalogue_models", "Models of the upstream that are served", () => status().models],
  [
    "signalbox_catalogue_left_out",
    "Models of the upstream's list that make no sense",
    () => status().leftOut
  ],
  [
    "signalbox_catalogue_age_seconds",
    "Age of the list that is served; 0 where there is none",
    () => {
      const { fetchedAt } = status()
      return fetchedAt === undefined ? 0 : (clock.currentTimeMillisUnsafe() - fetchedAt.getTime()) / 1000
    }
  ],
  [
    "signalbox_catalogue_stale",
    "1 while the upstream's list cannot be fetched and an older one is served",
    () => (status().isStale ? 1 : 0)
  ],
  ["signalbox_catalogue_fetches_total", "Tries to fetch the upstream's list", () => known.fetches],
  [
    "signalbox_catalogue_failures_total",
    "Tries that failed, or brought a list of no use",
    () => known.failures
  ]
]
