import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { CollectionRoute, CollectionRoutes, type Health } from "#actors/llm/CollectionRoutes.ts"

const options = { failuresMax: 2, openMinMillis: 1_000, openMaxMillis: 60_000, limitedMillis: 200 }
const members = ["a", "b", "c"].map((id) => ({ id }))

const route = (membersMax = 100): CollectionRoute => new CollectionRoute(options, membersMax)
const asked = (of: CollectionRoute, now: number): string =>
  of
    .order(members, now)
    .map(({ id }) => id)
    .join("")
const fails = (of: CollectionRoute, id: string, now: number): void => {
  for (let index = 0; index < options.failuresMax; index++) of.report(id, "failed", now)
}

describe("the route of a collection", () => {
  it("asks the members in their order, whoever answered last", () => {
    const healthy = route()
    healthy.report("b", "succeeded", 0)
    healthy.report("a", "moot", 0)
    assert.strictEqual(asked(healthy, 0), "abc")
  })

  it("leaves out a member that fails again and again, until it may be probed in its old place", () => {
    const broken = route()
    fails(broken, "a", 0)
    assert.strictEqual(asked(broken, 0), "bc")
    assert.strictEqual(asked(broken, 1_000), "abc")
    broken.begin("a")
    assert.strictEqual(asked(broken, 1_000), "bc", "one probe at a time")
    broken.report("a", "succeeded", 1_000)
    assert.strictEqual(asked(broken, 1_000), "abc")
  })

  it("leaves a member alone for as long as its Retry-After says", () => {
    const limited = route()
    limited.report("b", { limitedMillis: 30_000 }, 0)
    limited.report("c", { limitedMillis: undefined }, 0)
    assert.strictEqual(asked(limited, 0), "a")
    assert.strictEqual(asked(limited, 200), "ac")
    assert.strictEqual(asked(limited, 30_000), "abc")
  })

  it("asks the one whose turn comes soonest where all are left out", () => {
    const gone = route()
    for (const id of ["a", "b", "c"]) fails(gone, id, 0)
    gone.report("b", { limitedMillis: 100 }, 0)
    assert.strictEqual(asked(gone, 0), "b")
  })

  it("knows of a client that left, or a request at fault, that it says nothing of the member", () => {
    const moot = route()
    moot.report("a", "failed", 0)
    for (let index = 0; index < 10; index++) moot.report("a", "moot", 0)
    assert.strictEqual(asked(moot, 0), "abc")
    moot.report("a", "failed", 0)
    assert.strictEqual(asked(moot, 0), "bc")
  })

  it("forgets the oldest of more members than a collection can have", () => {
    const small = route(2)
    fails(small, "a", 0)
    fails(small, "b", 0)
    assert.strictEqual(asked(small, 0), "c")
    fails(small, "c", 0)
    assert.strictEqual(asked(small, 0), "a")
  })

  it("always asks somebody, in the members' order, and nobody twice, whatever happened before", () => {
    const health = fc.constantFrom<Health>(
      "succeeded",
      "failed",
      "moot",
      { limitedMillis: 5_000 },
      { limitedMillis: undefined }
    )
    const report = fc.tuple(fc.constantFrom("a", "b", "c", "d"), health, fc.boolean(), fc.nat(3_000))
    fc.assert(
      fc.property(fc.array(report, { maxLength: 50 }), (reports) => {
        const any = route()
        let now = 0
        for (const [id, outcome, begins, millis] of reports) {
          now += millis
          if (begins) any.begin(id)
          any.report(id, outcome, now)
          assert.match(asked(any, now), /^(?=.)a?b?c?$/)
        }
      })
    )
    assert.deepStrictEqual(route().order([], 0), [])
  })
})

describe("the routes of all collections", () => {
  const layer = CollectionRoutes.layer({ ...options, membersMax: 100, idleMillis: 60_000 })

  it.effect("keep each collection's members apart, and remember them from call to call", () =>
    Effect.gen(function* () {
      const routes = yield* CollectionRoutes
      assert.isUndefined(routes.peek("col_1"))
      const first = yield* routes.acquire("col_1")
      fails(first, "a", 0)
      const again = yield* routes.acquire("col_1")
      assert.strictEqual(asked(again, 0), "bc")
      assert.strictEqual(routes.peek("col_1"), first)
      assert.strictEqual(asked(yield* routes.acquire("col_2"), 0), "abc")
    }).pipe(Effect.provide(layer))
  )
})
