import { assert, describe, it } from "@effect/vitest"
import { BodyTurns } from "#src/front/uws/BodyTurns.ts"

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Bodies that ask for a turn for each of their pieces, one behind the other; notes who gets one. */
class Bodies {
  readonly got: Array<string> = []
  private readonly turns: BodyTurns

  constructor(turns: BodyTurns) {
    this.turns = turns
  }

  pull(name: string, pieces: number, bytes: number): void {
    let left = pieces
    const attempt = (): void => {
      while (left > 0 && this.turns.admits(bytes, attempt)) {
        left--
        this.got.push(name)
      }
    }
    attempt()
  }

  /** those that got a turn since the last call */
  take(): string {
    return this.got.splice(0).join("")
  }
}

describe("turns of bodies", () => {
  it("hand out so many bytes, and the rest of the last piece, in order and in the turns behind", async () => {
    const bodies = new Bodies(new BodyTurns(100))
    bodies.pull("a", 3, 60)
    bodies.pull("b", 2, 60)
    bodies.pull("c", 1, 100)
    assert.strictEqual(bodies.take(), "aa")
    const turns: Array<string> = []
    while (turns.length < 4) {
      await turn()
      turns.push(bodies.take())
    }
    // A body that asks again stands behind those that wait.
    assert.deepStrictEqual(turns, ["ab", "c", "b", ""])
  })

  it("begin anew in each turn of the event loop, whether or not somebody waits", async () => {
    const bodies = new Bodies(new BodyTurns(100))
    for (let turns = 0; turns < 3; turns++) {
      bodies.pull("a", 10, 10)
      assert.strictEqual(bodies.take(), "a".repeat(10))
      await turn()
    }
  })
})
