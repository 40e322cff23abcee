import { assert, describe, it } from "@effect/vitest"
import { ShardId } from "effect/cluster"
import { HeldShards } from "#src/agents/cluster/HeldShards.ts"

/** Session `n` is in shard `n`, of three. */
const shardOf = (sessionId: string): ShardId.ShardId => {
  const digits = /\d+$/.exec(sessionId)?.[0] ?? "0"
  return ShardId.make("default", (Number(digits) % 3) + 1)
}

const machine = () => {
  let locks = ["a0", "a1", "a2"]
  const hasShardId = (shard: ShardId.ShardId) => locks.some((id) => String(shardOf(id)) === String(shard))
  const held = new HeldShards({ getShardId: shardOf, hasShardId }, 3, 1_000)
  /** with these locks at that time, the sessions that are given up */
  const given = (millis: number, ...now: ReadonlyArray<string>) => {
    locks = [...now]
    const isGone = held.look(millis)
    return ["a0", "a1", "a2"].filter((id) => isGone?.(id) === true)
  }
  return { held, given }
}

describe("the homes that a machine holds", () => {
  it("are given up when their lock has stayed away, once", () => {
    const { given, held } = machine()
    assert.deepStrictEqual(given(0, "a0", "a1", "a2"), [])
    assert.deepStrictEqual(given(100, "a0", "a1"), [])
    assert.isFalse(held.isHere("a2"))
    assert.deepStrictEqual(given(1_099, "a0", "a1"), [])
    assert.deepStrictEqual(given(1_100, "a0", "a1"), ["a2"])
    assert.deepStrictEqual(given(9_000, "a0", "a1"), [])
  })

  it("are kept when their lock comes back in time", () => {
    const { given } = machine()
    given(0, "a0", "a1", "a2")
    assert.deepStrictEqual(given(100, "a0"), [])
    assert.deepStrictEqual(given(900, "a0", "a1"), [])
    assert.deepStrictEqual(given(1_500, "a0", "a1"), ["a2"])
    assert.deepStrictEqual(given(9_000, "a0", "a1"), [])
  })

  it("are kept as long as all locks are away, for then it is Postgres that went", () => {
    const { given, held } = machine()
    given(0, "a0", "a1", "a2")
    assert.deepStrictEqual(given(100), [])
    assert.deepStrictEqual(given(99_000), [])
    assert.strictEqual(held.count, 0)
    assert.deepStrictEqual(given(100_000, "a1"), [])
    assert.deepStrictEqual(given(101_000, "a1"), ["a0", "a2"])
  })

  it("have an entity each, which leads to the same shard", () => {
    const { held } = machine()
    const entities = ["a0", "a1", "a2"].map((id) => held.entityIdOf(id))
    assert.strictEqual(new Set(entities).size, 3)
    for (const [index, entity] of entities.entries())
      assert.strictEqual(shardOf(entity), shardOf(`a${index}`))
  })
})
