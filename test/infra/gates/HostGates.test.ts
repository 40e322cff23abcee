import { assert, describe, it } from "@effect/vitest"
import { type HostHealth, HostGates, type HostGatesOptions, type Pass } from "#src/infra/gates/HostGates.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"

const options: HostGatesOptions = {
  hosts: 10_000,
  turnMillis: 60,
  restMillis: 30_000,
  pauseMillis: 1_000,
  failuresMax: 5,
  openMinMillis: 10_000,
  openMaxMillis: 300_000
}

/** Gates whose clock the test moves, and the entries to them so far. */
const opened = (changes: Partial<HostGatesOptions> = {}) => {
  let now = 0
  const gates = new HostGates({ ...options, ...changes }, () => now)
  const enter = (host: string, most: number, owner = "ada") => {
    const found: { entry?: Pass | Refusal } = {}
    gates.enter(owner, host, most, (entry) => (found.entry = entry))
    return found
  }
  return { gates, enter, pass: (millis: number) => (now += millis) }
}

type Found = ReturnType<ReturnType<typeof opened>["enter"]>

const isIn = ({ entry }: Found): boolean => entry !== undefined && "leave" in entry
const restOf = ({ entry }: Found): number | undefined =>
  entry !== undefined && "restMillis" in entry ? entry.restMillis : undefined
const leave = ({ entry }: Found, health: HostHealth = "well"): void => {
  assert.isTrue(entry !== undefined && "leave" in entry, "it is in")
  if (entry !== undefined && "leave" in entry) entry.leave(health)
}

const times = (count: number, once: () => Found): ReadonlyArray<Found> => Array.from({ length: count }, once)

describe("attempts at a host", () => {
  it("are as many at once as are let through; as many others wait their turn, and the rest is sent away", () => {
    const { enter } = opened()
    const found = times(10, () => enter("a", 4))
    assert.deepStrictEqual(
      found.map(isIn),
      found.map((_, n) => n < 4)
    )
    assert.deepStrictEqual(
      found.map((one) => restOf(one) !== undefined),
      [...Array.from({ length: 8 }, () => false), true, true]
    )
    assert.deepInclude(found[9]?.entry, { isBusy: true })
    assert.isTrue(isIn(enter("b", 4)), "another host has turns of its own")
    leave(found[0]!)
    assert.deepStrictEqual(found.slice(4, 8).map(isIn), [true, false, false, false])
    for (const one of found.slice(1, 5)) leave(one)
    for (const one of found.slice(5, 8)) leave(one)
  })

  it("that are still to come are told the turn that they would be sent away to, one behind the other", () => {
    const { enter, gates, pass } = opened({ failuresMax: 1 })
    const tell = () => gates.untilTurn("ada", "a", 2)
    assert.strictEqual(tell(), 0, "nobody has asked the host")
    const found = times(2, () => enter("a", 2))
    assert.strictEqual(tell(), 0, "they may wait there")
    const waiting = times(2, () => enter("a", 2))
    const [first, second] = [tell(), tell()]
    assert.isAbove(first, options.turnMillis)
    assert.isAbove(second, first)
    assert.isAbove(restOf(enter("a", 2)) ?? 0, second)
    assert.strictEqual(gates.untilTurn("ada", "b", 2), 0)
    for (const one of [...found, ...waiting]) leave(one)
    pass(options.restMillis)
    assert.strictEqual(tell(), 0)
    leave(enter("a", 2), "failed")
    assert.isAtLeast(tell(), options.openMinMillis)
    pass(options.openMinMillis)
    assert.strictEqual(tell(), 0, "the first one asks how the host is")
  })

  it("are sent away for longer, the more were before them, at the pace of the host", () => {
    const { enter, pass } = opened()
    const slow = times(4, () => enter("a", 4))
    pass(1_000)
    for (const one of slow.slice(1)) leave(one)
    times(3, () => enter("a", 4))
    const rests = times(8, () => enter("a", 4)).map((one) => restOf(one) ?? Number.NaN)
    assert.isAbove(rests[0] ?? 0, 100, "none waits for a slow host")
    for (const [n, rest] of rests.entries()) if (n > 0) assert.isAbove(rest, rests[n - 1] ?? 0)
    for (const rest of times(5_000, () => enter("a", 4)).map(restOf))
      assert.isAtMost(rest ?? 0, options.restMillis)
  })

  it("of another owner do not come behind all that were sent away before", () => {
    const { enter } = opened()
    times(8, () => enter("a", 4))
    const rests = times(1_000, () => enter("a", 4)).map(restOf)
    assert.isAbove(rests.at(-1) ?? 0, 10_000)
    assert.isBelow(restOf(enter("a", 4, "bob")) ?? Infinity, 200)
  })

  it("wait no longer than their time, and are then sent away", async () => {
    const { enter } = opened()
    times(1, () => enter("a", 1))
    const waiting = enter("a", 1)
    assert.isUndefined(waiting.entry)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.isDefined(restOf(waiting))
  })

  it("rest after five failures in a row, 10 seconds and up to 5 minutes; then there is one probe", () => {
    const { enter, pass } = opened()
    for (let n = 0; n < 5; n++) leave(enter("a", 4), n === 0 ? "moot" : "failed")
    leave(enter("a", 4), "failed")
    for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
      const rest = restOf(enter("a", 4)) ?? 0
      assert.isAtLeast(rest, seconds * 1_000)
      assert.isAtMost(rest, seconds * 1_000 + options.pauseMillis)
      assert.deepInclude(enter("a", 4).entry, { isBusy: false })
      pass(seconds * 1_000)
      const probe = enter("a", 4)
      assert.isTrue(isIn(probe))
      assert.isAtMost(restOf(enter("a", 4)) ?? Infinity, options.pauseMillis)
      leave(probe, "failed")
    }
    pass(300_000)
    leave(enter("a", 4))
    assert.deepStrictEqual(times(4, () => enter("a", 4)).map(isIn), [true, true, true, true])
  })

  it("rest until the probe is over, or until nobody has come to make it", () => {
    const { enter, gates, pass } = opened({ failuresMax: 1 })
    assert.isFalse(gates.isResting("a"))
    leave(enter("a", 1), "failed")
    assert.isTrue(gates.isResting("a"))
    pass(options.openMinMillis + options.pauseMillis)
    assert.isTrue(gates.isResting("a"), "the probe may be on its way")
    const probe = enter("a", 1)
    pass(options.openMaxMillis)
    assert.isTrue(gates.isResting("a"), "the probe hangs")
    leave(probe, "failed")
    pass(2 * options.openMinMillis + 2 * options.pauseMillis)
    assert.isFalse(gates.isResting("a"))
    leave(enter("a", 1))
    assert.isFalse(gates.isResting("a"))
  })

  it("that failed fewer times, or had an answer in between, do not rest; nothing is kept of a host that is well", () => {
    const { enter, gates } = opened()
    for (let n = 0; n < 20; n++) leave(enter("a", 4), n % 5 === 4 ? "well" : "failed")
    assert.isTrue(isIn(enter("b", 4)))
    for (let n = 0; n < 20; n++) leave(enter("c", 4), "moot")
    leave(enter("a", 4))
    assert.strictEqual(gates.size, 1)
  })

  it("are let through no more once the process stops", () => {
    const { enter, gates } = opened()
    times(1, () => enter("a", 1))
    const waiting = enter("a", 1)
    gates.stop()
    assert.strictEqual(restOf(waiting), 0)
    assert.strictEqual(restOf(enter("a", 1)), 0)
    assert.strictEqual(restOf(enter("b", 1)), 0)
  })

  it("are of so many hosts at most as are remembered", () => {
    const { enter, gates } = opened({ hosts: 10 })
    for (let n = 0; n < 50; n++) leave(enter(`host ${n}`, 1), "failed")
    assert.strictEqual(gates.size, 10)
  })
})
