import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, Metric, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { CatalogueCopies, type CatalogueCopy, CopiesUnavailable } from "#actors/llm/CatalogueCopies.ts"
import * as CatalogueMirror from "#actors/llm/CatalogueMirror.ts"
import { CatalogueSource, CatalogueUnavailable } from "#actors/llm/CatalogueSource.ts"
import { listOf, upstreamModel } from "./UpstreamModels.ts"

const hour = 3_600_000

const options: CatalogueMirror.CatalogueMirrorOptions = {
  refreshMillis: 3 * hour,
  retryMinMillis: 1_000,
  retryMaxMillis: 300_000,
  startMillis: 3_000
}

/** An upstream, a store of copies and a log that the test holds in its hands. */
class Outside {
  /** the upstream's answer; undefined: none, ever */
  answer: Effect.Effect<string, CatalogueUnavailable> = Effect.never
  fetches = 0
  copy: CatalogueCopy | undefined
  isStoreAway = false
  readonly lines: Array<string> = []

  lists(...ids: ReadonlyArray<string>): void {
    this.says(listOf(...ids.map((id) => upstreamModel(id))))
  }

  says(body: string): void {
    this.answer = Effect.succeed(body)
  }

  isAway(problem = "ECONNREFUSED"): void {
    this.answer = Effect.fail(new CatalogueUnavailable({ problem }))
  }

  readonly layer = Layer.mergeAll(
    Layer.succeed(CatalogueSource, {
      fetch: Effect.suspend(() => {
        this.fetches++
        return this.answer
      })
    }),
    Layer.succeed(CatalogueCopies, {
      newerThan: (than) =>
        this.#orAway(() =>
          this.copy !== undefined && (than === undefined || this.copy.fetchedAt > than)
            ? this.copy
            : undefined
        ),
      keep: (copy) =>
        this.#orAway(() => {
          this.copy = copy
        })
    }),
    Logger.layer([Logger.make(({ message }) => void this.lines.push(String(message)))])
  )

  #orAway<A>(act: () => A): Effect.Effect<A, CopiesUnavailable> {
    return Effect.suspend(() =>
      this.isStoreAway ? Effect.fail(new CopiesUnavailable({ problem: "no connection" })) : Effect.sync(act)
    )
  }
}

const idsOf = (mirror: CatalogueMirror.CatalogueMirror) => mirror.current()?.models.map(({ id }) => id)

const test = (
  sentence: string,
  run: (outside: Outside) => Effect.Effect<void, unknown, CatalogueSource | CatalogueCopies | Scope.Scope>
) =>
  it.effect(sentence, () => {
    const outside = new Outside()
    return Effect.provide(run(outside), outside.layer)
  })

describe("the mirror of the catalogue", () => {
  test("has the list when it is there, and fetches it anew every three hours", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/one")
      const mirror = yield* CatalogueMirror.make(options)
      assert.deepStrictEqual([idsOf(mirror), outside.fetches], [["a/one"], 1])
      outside.lists("a/one", "a/two")
      yield* TestClock.adjust(3 * hour - 1)
      assert.strictEqual(outside.fetches, 1)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([idsOf(mirror), outside.fetches], [["a/one", "a/two"], 2])
      assert.deepStrictEqual(mirror.status(), {
        models: 2,
        leftOut: 0,
        fetchedAt: new Date(3 * hour),
        isStale: false
      })
      assert.deepStrictEqual(outside.lines, [])
    }))

  test("waits for the first list, but not for ever", (outside) =>
    Effect.gen(function* () {
      const slow = yield* Deferred.make<string>()
      outside.answer = Deferred.await(slow)
      const making = yield* Effect.forkChild(CatalogueMirror.make(options))
      yield* TestClock.adjust(2_999)
      assert.isUndefined(making.pollUnsafe())
      yield* TestClock.adjust(1)
      const mirror = yield* Fiber.join(making)
      assert.deepInclude(mirror.status(), {
        models: 0,
        isStale: true,
        problem: "it has not been fetched yet"
      })
      yield* Deferred.succeed(slow, listOf(upstreamModel("a/late")))
      yield* Effect.yieldNow
      yield* TestClock.adjust(0)
      assert.deepStrictEqual([idsOf(mirror), mirror.status().isStale], [["a/late"], false])
    }))

  test("does not wait for an upstream that is away, and tries again after pauses that double to five minutes", (outside) =>
    Effect.gen(function* () {
      outside.isAway()
      const mirror = yield* CatalogueMirror.make(options)
      assert.deepInclude(mirror.status(), { models: 0, fetchedAt: undefined, problem: "ECONNREFUSED" })
      let at = 0
      for (const pauseMillis of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map(
        (seconds) => seconds * 1_000
      )) {
        const before = outside.fetches
        yield* TestClock.adjust(pauseMillis - 1)
        assert.strictEqual(outside.fetches, before, `after ${at} ms`)
        yield* TestClock.adjust(1)
        assert.strictEqual(outside.fetches, before + 1, `after ${at} ms`)
        at += pauseMillis
      }
      outside.lists("a/back")
      yield* TestClock.adjust(300_000)
      assert.deepStrictEqual([idsOf(mirror), mirror.status().isStale], [["a/back"], false])
      // The next outage begins with the shortest pause again.
      outside.isAway()
      yield* TestClock.adjust(3 * hour)
      const before = outside.fetches
      yield* TestClock.adjust(1_000)
      assert.strictEqual(outside.fetches, before + 1)
    }))

  test("keeps the last good list through every kind of bad one, and says why", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/good")
      const mirror = yield* CatalogueMirror.make(options)
      for (const [body, problem] of [
        ["", "the list is not JSON"],
        ["{}", "the list has no data array"],
        [listOf(), "the list is empty"],
        [listOf({}, {}), "2 of the list's 2 models make no sense; data[0]: no usable id"],
        [`${listOf(upstreamModel("b/other")).slice(0, -1)}`, "the list is not JSON"]
      ] as const) {
        outside.says(body)
        const failed = yield* Effect.flip(mirror.refresh)
        assert.strictEqual(failed.problem, problem)
        assert.deepStrictEqual(idsOf(mirror), ["a/good"], body)
        assert.deepInclude(mirror.status(), { models: 1, isStale: true, problem, fetchedAt: new Date(0) })
        assert.strictEqual(outside.copy?.body, listOf(upstreamModel("a/good")))
      }
    }))

  test("begins with the copy of an earlier life when the upstream is away", (outside) =>
    Effect.gen(function* () {
      outside.copy = { body: listOf(upstreamModel("a/kept")), fetchedAt: new Date(-hour) }
      outside.isAway()
      const mirror = yield* CatalogueMirror.make(options)
      assert.deepStrictEqual(idsOf(mirror), ["a/kept"])
      assert.deepInclude(mirror.status(), { isStale: true, fetchedAt: new Date(-hour) })
    }))

  test("takes what another process has fetched while its own way to the upstream is down", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/own")
      const mirror = yield* CatalogueMirror.make(options)
      outside.isAway()
      outside.copy = { body: listOf(upstreamModel("a/others")), fetchedAt: new Date(hour) }
      yield* TestClock.adjust(3 * hour)
      assert.deepStrictEqual(idsOf(mirror), ["a/others"])
      assert.isTrue(mirror.status().isStale)
    }))

  test("takes no copy that is of no use", (outside) =>
    Effect.gen(function* () {
      outside.copy = { body: "nonsense", fetchedAt: new Date(-1) }
      outside.isAway()
      const mirror = yield* CatalogueMirror.make(options)
      assert.isUndefined(mirror.current())
    }))

  test("serves a list that it could not keep, and tries to keep it until it can", (outside) =>
    Effect.gen(function* () {
      outside.isStoreAway = true
      outside.lists("a/one")
      const mirror = yield* CatalogueMirror.make(options)
      assert.deepStrictEqual([idsOf(mirror), mirror.status().isStale], [["a/one"], false])
      yield* TestClock.adjust(1_000)
      assert.strictEqual(outside.fetches, 2)
      outside.isStoreAway = false
      yield* TestClock.adjust(2_000)
      assert.deepStrictEqual([outside.fetches, outside.copy?.fetchedAt], [3, new Date(3_000)])
      yield* TestClock.adjust(hour)
      assert.strictEqual(outside.fetches, 3)
    }))

  test("says an outage once in the log, however long it lasts, and its end once", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/one")
      yield* CatalogueMirror.make(options)
      outside.isAway("ECONNREFUSED")
      yield* TestClock.adjust(4 * hour)
      outside.isAway("the upstream answered 503")
      yield* TestClock.adjust(hour)
      outside.lists("a/one")
      yield* TestClock.adjust(hour)
      const served = "1 models of 1970-01-01T00:00:00.000Z are served"
      assert.deepStrictEqual(outside.lines, [
        `The upstream's list of models cannot be fetched: ECONNREFUSED; ${served}`,
        `The upstream's list of models cannot be fetched: the upstream answered 503; ${served}`,
        "The upstream's list of models is up to date again"
      ])
    }))

  test("says once which models it leaves out", (outside) =>
    Effect.gen(function* () {
      outside.says(listOf(upstreamModel("a/one"), { id: 7 }))
      const mirror = yield* CatalogueMirror.make(options)
      yield* TestClock.adjust(6 * hour)
      assert.strictEqual(mirror.status().leftOut, 1)
      outside.lists("a/one")
      yield* TestClock.adjust(3 * hour)
      assert.deepStrictEqual(outside.lines, [
        "1 models of the upstream's list are left out, 1 are there; data[1]: no usable id",
        "Every model of the upstream's list makes sense again"
      ])
    }))

  test("shows how it is on /metrics", (outside) =>
    Effect.gen(function* () {
      outside.says(listOf(upstreamModel("a/one"), { id: 7 }))
      yield* CatalogueMirror.make(options)
      outside.isAway()
      yield* TestClock.adjust(3 * hour + 500)
      const shown = new Map(
        (yield* Metric.snapshot).map(({ id, state }) => [
          id,
          "value" in state ? state.value : "count" in state ? state.count : undefined
        ])
      )
      const read = (name: string) => shown.get(`signalbox_catalogue_${name}`)
      assert.deepStrictEqual(
        ["models", "left_out", "age_seconds", "stale", "fetches_total", "failures_total"].map(read),
        [1, 1, 10_800.5, 1, 2, 1]
      )
    }))

  test("serves on through its own crashes, and lives again when it had been given up", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/one")
      const mirror = yield* CatalogueMirror.make({ ...options, refreshMillis: 1_000 })
      outside.answer = Effect.die(new Error("a fault of the program"))
      const failed = yield* Effect.flip(mirror.refresh)
      assert.match(failed.problem, /^its mirror is down \(ActorCrashed\)$/)
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(idsOf(mirror), ["a/one"])
      const given = yield* Effect.flip(mirror.refresh)
      assert.match(given.problem, /^its mirror is down/)
      outside.lists("a/two")
      yield* TestClock.adjust(options.retryMaxMillis)
      assert.deepStrictEqual(idsOf(mirror), ["a/two"])
    }))

  test("fetches once at a time, and again for each who asks", (outside) =>
    Effect.gen(function* () {
      outside.lists("a/one")
      const mirror = yield* CatalogueMirror.make(options)
      let running = 0
      let most = 0
      outside.answer = Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Effect.sleep(10)
        running--
        return listOf(upstreamModel("a/two"))
      })
      // The actor's own fetch is under way when the others ask.
      yield* TestClock.adjust(3 * hour)
      const all = yield* Effect.forkChild(
        Effect.all([mirror.refresh, mirror.refresh, mirror.refresh], { concurrency: "unbounded" })
      )
      yield* TestClock.adjust(40)
      yield* Fiber.join(all)
      assert.deepStrictEqual([most, outside.fetches, idsOf(mirror)], [1, 5, ["a/two"]])
    }))
})
