import { setTimeout as pause } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import {
  alone,
  answersMeets,
  isMeetAnswer,
  isMeetRequest,
  makeBarrier,
  type MeetAnswer
} from "#bench/harness/Barrier.ts"
import type { BenchSuite } from "#bench/harness/Suite.ts"
import { warmUp } from "#bench/harness/WarmUp.ts"
import { runTiny } from "./TinyRun.ts"

describe("the barrier of two sides", () => {
  it("lets both begin a part once both are there, however late one comes", async () => {
    const barrier = makeBarrier()
    const order: Array<string> = []
    const side = async (number: number, delayMillis: number): Promise<void> => {
      for (let part = 0; part < 3; part++) {
        await pause(delayMillis)
        order.push(`${number} comes`)
        await barrier.meetOf(number)(true)
        order.push(`part ${part}`)
      }
    }
    await Promise.all([side(0, 20), side(1, 0)])
    const round = (part: number): ReadonlyArray<string> => [
      "1 comes",
      "0 comes",
      `part ${part}`,
      `part ${part}`
    ]
    assert.deepStrictEqual(order, [0, 1, 2].flatMap(round))
  })

  it("says whether both are ready", async () => {
    const barrier = makeBarrier()
    const meet = (...ready: ReadonlyArray<boolean>): Promise<ReadonlyArray<boolean>> =>
      Promise.all(ready.map((isReady, side) => barrier.meetOf(side)(isReady)))
    assert.deepStrictEqual(await meet(true, false), [false, false])
    assert.deepStrictEqual(await meet(true, true), [true, true])
  })

  it("holds no side up once the other one has left, also while it waits", async () => {
    const barrier = makeBarrier()
    const waiting = barrier.meetOf(1)(true)
    barrier.leave(0)
    assert.isTrue(await waiting)
    assert.isFalse(await barrier.meetOf(1)(false))
  })

  it("reaches a case in another process by messages", async () => {
    const sent: Array<MeetAnswer> = []
    const onRequest = answersMeets(alone, (answer) => void sent.push(answer))
    await onRequest({ barrier: "there", isReady: true })
    await onRequest({ barrier: "there", isReady: false })
    assert.deepStrictEqual(sent, [
      { barrier: "go", areReady: true },
      { barrier: "go", areReady: false }
    ])
    assert.isTrue(isMeetRequest({ barrier: "there", isReady: true }))
    assert.isFalse(isMeetRequest({ barrier: "go", areReady: true }))
    assert.isFalse(isMeetRequest({ measured: 1 }))
    assert.isTrue(isMeetAnswer({ barrier: "go", areReady: true }))
    assert.isFalse(isMeetAnswer({ do: "leave" }))
  })
})

describe("a warm-up", () => {
  const windows = (figures: ReadonlyArray<number>) => {
    let taken = 0
    return {
      window: async () => ({ work: 100, cpuMillis: figures[taken++] ?? figures.at(-1) ?? 0 }),
      taken: () => taken
    }
  }

  it("ends when three windows agree with the three before them, or after its most, and says which", async () => {
    const steady = windows([90, 50, 30, 20, 12, 10])
    assert.deepInclude(await warmUp({ size: "quick", meet: alone }, steady.window), { isSteady: true })
    assert.strictEqual(steady.taken(), 11)
    const never = windows(Array.from({ length: 40 }, (_, at) => 2 ** at))
    assert.deepInclude(await warmUp({ size: "quick", meet: alone }, never.window), { isSteady: false })
    assert.strictEqual(never.taken(), 24)
  })

  it("does not take code that has hardly run for warm", async () => {
    const even = windows([10])
    await warmUp({ size: "quick", meet: alone, workMin: 1_200 }, even.window)
    assert.strictEqual(even.taken(), 12)
  })

  it("of a side that is ready goes on for as long as the other one is not", async () => {
    const barrier = makeBarrier()
    const [early, late] = [windows([10]), windows([90, 50, 30, 20, 12, 10])]
    const of = (side: number) => ({ size: "quick" as const, meet: barrier.meetOf(side) })
    const both = await Promise.all([warmUp(of(0), early.window), warmUp(of(1), late.window)])
    assert.deepStrictEqual(
      both.map(({ isSteady }) => isSteady),
      [true, true]
    )
    assert.deepStrictEqual([early.taken(), late.taken()], [11, 11])
  })
})

describe("a case that measures side by side", () => {
  it("has both sides measured at a time in a comparison, in parts, and in one part otherwise", async () => {
    const parts: Array<number> = []
    const order: Array<string> = []
    let opened = 0
    const suite: BenchSuite = {
      name: "made-up",
      about: "nothing",
      unit: "things",
      stage: async () => ({ given: opened++ % 2, leave: async () => undefined }),
      cases: [
        {
          name: "side by side",
          compared: "always",
          sideBySide: true,
          run: async (context) => {
            parts.push(context.parts)
            for (let part = 0; part < context.parts; part++) {
              // One side's parts take longer: the other one waits.
              if (context.given === 1) await pause(2)
              await context.meet(true)
              order.push(String(part))
            }
            return { work: 1, elapsedMillis: 1 }
          }
        }
      ]
    }
    await runTiny(suite, { rounds: 1, sides: 2 })
    assert.deepStrictEqual(parts, [12, 12])
    assert.deepStrictEqual(
      order,
      Array.from({ length: 12 }, (_, part) => [String(part), String(part)]).flat()
    )
    await runTiny(suite, { rounds: 1 })
    assert.deepStrictEqual(parts, [12, 12, 1])
  })
})
