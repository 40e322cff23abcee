import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Breaker, type BreakerState } from "#actors/kernel/Breaker.ts"

const options = { failuresMax: 3, openMinMillis: 1_000, openMaxMillis: 8_000, limitedMillis: 200 }

/** Lets the probe through and answers what came of it. */
const probe = (breaker: Breaker, now: number, outcome: "fails" | "succeeds"): void => {
  assert.strictEqual(breaker.state(now), "probe")
  breaker.begin()
  if (outcome === "fails") breaker.fail(now)
  else breaker.succeed()
}

const opened = (): Breaker => {
  const breaker = new Breaker(options)
  for (let index = 0; index < 3; index++) breaker.fail(0)
  return breaker
}

describe("the circuit breaker of a model", () => {
  it("opens after so many failures in a row, and not for as many with a success between them", () => {
    const breaker = new Breaker(options)
    breaker.fail(0)
    breaker.fail(0)
    breaker.succeed()
    breaker.fail(0)
    breaker.fail(0)
    assert.strictEqual(breaker.state(0), "closed")
    breaker.fail(5)
    assert.deepStrictEqual([breaker.state(5), breaker.openUntil], ["open", 1_005])
  })

  it("lets one call through when its time is over, and no second one meanwhile", () => {
    const breaker = opened()
    assert.strictEqual(breaker.state(999), "open")
    assert.strictEqual(breaker.state(1_000), "probe")
    breaker.begin()
    assert.strictEqual(breaker.state(1_000), "open")
    breaker.succeed()
    assert.deepStrictEqual([breaker.state(1_000), breaker.openUntil], ["closed", 0])
  })

  it("is open twice as long after each probe that fails, up to the most", () => {
    const breaker = opened()
    let now = 0
    for (const wait of [2_000, 4_000, 8_000, 8_000]) {
      now = breaker.openUntil
      probe(breaker, now, "fails")
      assert.strictEqual(breaker.openUntil - now, wait)
    }
  })

  it("is open for its time once, however many calls were under way when it opened and fail with it", () => {
    const breaker = opened()
    for (let index = 0; index < 100; index++) breaker.fail(10)
    assert.strictEqual(breaker.openUntil, 1_000)
    probe(breaker, 1_000, "fails")
    for (let index = 0; index < 100; index++) breaker.fail(1_010)
    assert.strictEqual(breaker.openUntil, 3_000)
  })

  it("counts from the beginning after a probe that succeeds", () => {
    const breaker = opened()
    probe(breaker, 1_000, "fails")
    probe(breaker, 3_000, "succeeds")
    breaker.fail(3_000)
    breaker.fail(3_000)
    assert.strictEqual(breaker.state(3_000), "closed")
    breaker.fail(3_000)
    assert.strictEqual(breaker.openUntil, 4_000)
  })

  it("lets another probe through where one says nothing of the model: its client left", () => {
    const breaker = opened()
    breaker.begin()
    breaker.withdraw()
    assert.strictEqual(breaker.state(1_000), "probe")
    const closed = new Breaker(options)
    closed.fail(0)
    closed.withdraw()
    closed.fail(0)
    assert.strictEqual(closed.state(0), "closed")
  })

  it("believes a Retry-After up to the most, and waits a moment where there is none", () => {
    const breaker = new Breaker(options)
    breaker.limit(100, 5_000)
    assert.strictEqual(breaker.openUntil, 5_100)
    breaker.limit(100, 3_600_000)
    assert.strictEqual(breaker.openUntil, 8_100)
    breaker.limit(100, undefined)
    assert.strictEqual(breaker.openUntil, 300)
    assert.strictEqual(breaker.state(300), "probe")
  })

  it("does not take a rate limit for a failure", () => {
    const breaker = new Breaker(options)
    breaker.fail(0)
    breaker.fail(0)
    breaker.limit(0, 0)
    probe(breaker, 0, "succeeds")
    assert.strictEqual(breaker.state(0), "closed")
  })

  it("is never open for longer than the most, and always comes back, whatever happens", () => {
    const event = fc.tuple(
      fc.constantFrom("begin", "withdraw", "succeed", "fail", "limit", "wait"),
      fc.nat(20_000)
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const breaker = new Breaker(options)
        let now = 1
        for (const [what, millis] of events) {
          if (what === "wait") now += millis
          else if (what === "fail") breaker.fail(now)
          else if (what === "limit") breaker.limit(now, millis)
          else breaker[what]()
          assert.isAtMost(breaker.openUntil - now, options.openMaxMillis)
          assert.strictEqual(breaker.state(now) === "closed", breaker.openUntil === 0)
        }
        breaker.withdraw()
        const back: ReadonlyArray<BreakerState> = ["closed", "probe"]
        assert.include(back, breaker.state(now + options.openMaxMillis))
      })
    )
  })
})
