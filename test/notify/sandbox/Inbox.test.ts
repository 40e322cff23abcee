import { assert, describe, it } from "@effect/vitest"
import { type Entry, Inbox } from "#src/notify/sandbox/Inbox.ts"
import { sandboxLimits as limits } from "#src/notify/sandbox/Limits.ts"
import { endOf, test } from "./Stage.ts"

const entry = (fields: Partial<Entry> = {}): Omit<Entry, "seq"> => ({
  kind: "push",
  channel: "psh_1",
  receivedAt: new Date(0).toISOString(),
  accepted: true,
  status: 201,
  problem: null,
  fault: null,
  repeated: false,
  state: "delivered",
  headers: {},
  vapid: null,
  signed: null,
  payload: {},
  bytes: 100,
  ...fields
})

const all = (): boolean => true

describe("the sandbox's inbox", () => {
  test("lists by number, channel and acceptance", async ({ sandbox, sender }) => {
    const [one, two] = [await sandbox.subscribe(), await sandbox.subscribe()]
    for (const subscription of [one, two, one]) await sender.push(subscription)
    await sandbox.order({ status: 500 })
    await sender.push(one)
    const numbers = async (query: Parameters<typeof sandbox.inbox>[0]) => {
      const { entries, next } = await sandbox.inbox(query)
      return [entries.map(({ seq }) => seq), next]
    }
    assert.deepStrictEqual(await numbers({}), [[1, 2, 3, 4], 4])
    assert.deepStrictEqual(await numbers({ after: 2 }), [[3, 4], 4])
    assert.deepStrictEqual(await numbers({ limit: 2 }), [[1, 2], 2])
    assert.deepStrictEqual(await numbers({ channel: one.id }), [[1, 3, 4], 4])
    assert.deepStrictEqual(await numbers({ channel: one.id, accepted: true, after: 1 }), [[3], 3])
    assert.deepStrictEqual(await numbers({ after: 99 }), [[], 99])
  })

  test("waits for an entry that is meant, and no longer than it is told", async ({ sandbox, sender }) => {
    const [one, two] = [await sandbox.subscribe(), await sandbox.subscribe()]
    const waiting = sandbox.inbox({ channel: two.id, waitMillis: 20_000 })
    await sender.push(one)
    await sender.push(two)
    assert.deepStrictEqual(
      (await waiting).entries.map(({ seq }) => seq),
      [2]
    )
    assert.deepStrictEqual((await sandbox.inbox({ after: 2, waitMillis: 50 })).entries, [])
  })

  test("is cleared, and its numbers go on", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    await sender.push(subscription)
    await sandbox.clearInbox()
    assert.deepInclude(await sandbox.inbox(), { received: 0, accepted: 0, repeated: 0, entries: [] })
    await sender.push(subscription)
    const { entries } = await sandbox.inbox({ after: 1 })
    assert.deepStrictEqual(
      entries.map(({ repeated, seq }) => [seq, repeated]),
      [[2, false]]
    )
  })

  test("takes only numbers within their limits", async ({ sandbox }) => {
    for (const query of ["after=-1", "after=x", "limit=0", "limit=1001", "waitMillis=60001", "after=1e3"])
      assert.match(String(await endOf(sandbox.ask("GET", `/inbox?${query}`))), /^400 .*whole number/, query)
  })

  it("forgets the oldest beyond its number of entries, and says how many", () => {
    const inbox = new Inbox()
    for (let count = 0; count < limits.entries + 10; count++) inbox.add(entry())
    const { forgotten, received } = inbox.counts
    assert.strictEqual(received, limits.entries + 10)
    assert.isAtLeast(forgotten, 10)
    const kept = inbox.list(0, Infinity, all)
    assert.strictEqual(kept.length, received - forgotten)
    assert.deepStrictEqual([kept[0]?.seq, kept.at(-1)?.seq], [forgotten + 1, received])
    assert.deepStrictEqual(
      inbox.list(received - 2, 10, all).map(({ seq }) => seq),
      [received - 1, received]
    )
  })

  it("forgets the oldest beyond its bytes", () => {
    const inbox = new Inbox()
    const bytes = limits.bodyBytes
    const room = Math.floor(limits.entryBytes / bytes)
    for (let count = 0; count < room + 1; count++) inbox.add(entry({ bytes }))
    assert.isAtMost(inbox.list(0, Infinity, all).length * bytes, limits.entryBytes)
    assert.isAtLeast(inbox.counts.forgotten, 1)
    // Requests whose message was not kept take no room.
    const refused = new Inbox()
    for (let count = 0; count < room + 1; count++) refused.add(entry({ bytes, payload: null }))
    assert.strictEqual(refused.counts.forgotten, 0)
  })

  it("knows so many ids of repetitions, and forgets the oldest", () => {
    const inbox = new Inbox()
    let repeated = 0
    for (let count = 0; count <= limits.knownIds; count++)
      if (inbox.isRepeated("psh_1", `dlv_${count}`, true)) repeated++
    assert.strictEqual(repeated, 0)
    assert.isTrue(inbox.isRepeated("psh_1", `dlv_${limits.knownIds}`, true))
    assert.isFalse(inbox.isRepeated("psh_1", "dlv_0", true))
  })
})
