import { setTimeout as pause } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import type { BenchSuite } from "#bench/harness/Suite.ts"
import { always, givesTurns, isTurnRequest, makeTurns } from "#bench/harness/Turns.ts"
import { runTiny } from "./TinyRun.ts"

describe("turns of two sides", () => {
  it("go A B B A, one at a time, whichever side comes first", async () => {
    const turns = makeTurns()
    const order: Array<number> = []
    let under = 0
    const side = async (number: number, delayMillis: number): Promise<void> => {
      for (let count = 0; count < 4; count++) {
        await pause(delayMillis)
        await turns.turnOf(number)(async () => {
          assert.strictEqual(++under, 1)
          await pause(1)
          order.push(number)
          under--
        })
      }
      turns.ended(number)
    }
    await Promise.all([side(0, 5), side(1, 0)])
    assert.deepStrictEqual(order, [0, 1, 1, 0, 0, 1, 1, 0])
  })

  it("begin with the other side where they are told to", async () => {
    const turns = makeTurns(1)
    const order: Array<number> = []
    const side = async (number: number): Promise<void> => {
      for (let count = 0; count < 2; count++) await turns.turnOf(number)(async () => void order.push(number))
      turns.ended(number)
    }
    await Promise.all([side(0), side(1)])
    assert.deepStrictEqual(order, [1, 0, 0, 1])
  })

  it("are not waited for once the other side has ended, also where it failed in its turn", async () => {
    const turns = makeTurns()
    const failing = turns
      .turnOf(0)(() => Promise.reject(new Error("it fails")))
      .finally(() => turns.ended(0))
    const other = async (): Promise<number> => {
      let count = 0
      for (; count < 3; count++) await turns.turnOf(1)(() => pause(1))
      return count
    }
    const [failed, done] = await Promise.allSettled([failing, other()])
    assert.strictEqual(failed.status, "rejected")
    assert.deepInclude(done, { value: 3 })
  })

  it("reach a case in another process by messages", async () => {
    const sent: Array<string> = []
    const onRequest = givesTurns(always, ({ turn }) => void sent.push(turn))
    onRequest({ turn: "ask" })
    assert.deepStrictEqual(sent, ["begin"])
    onRequest({ turn: "end" })
    onRequest({ turn: "ask" })
    assert.deepStrictEqual(sent, ["begin", "begin"])
    assert.isTrue(isTurnRequest({ turn: "ask" }))
    assert.isFalse(isTurnRequest({ turn: "begin" }))
    assert.isFalse(isTurnRequest({ measured: 1 }))
  })
})

describe("a case that measures in turns", () => {
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
          name: "in turns",
          compared: "always",
          inTurns: true,
          run: async (context) => {
            parts.push(context.parts)
            for (let part = 0; part < context.parts; part++)
              await context.turn(async () => void order.push(String(context.given)))
            return { work: 1, elapsedMillis: 1 }
          }
        }
      ]
    }
    await runTiny(suite, { rounds: 1, sides: 2 })
    assert.deepStrictEqual(parts, [12, 12])
    assert.strictEqual(order.join(""), "0110".repeat(6))
    await runTiny(suite, { rounds: 1 })
    assert.deepStrictEqual(parts, [12, 12, 1])
  })
})
