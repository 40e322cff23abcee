import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RemoteClient } from "#src/agents/cluster/RemoteClient.ts"
import { SendQueue } from "#src/agents/cluster/SendQueue.ts"
import { RelayLink } from "#src/agents/cluster/RelayLink.ts"
import type { ToClient, ToHome } from "#src/agents/cluster/RelayRpcs.ts"
import { limits } from "#src/Limits.ts"
import { ClientSocket, key } from "./Machine.ts"

describe("what waits for another machine", () => {
  it("goes in order, in parts of the size of a batch, and a large one alone", async () => {
    const outbox = new SendQueue<number>(10)
    const first = Effect.runPromise(outbox.take)
    for (let item = 0; item < 3_000; item++) outbox.add(item, item === 5 ? 50 : 4)
    const taken: Array<number> = [...(await first)]
    const sizes = new Set<number>()
    while (taken.length < 3_000) {
      const batch = await Effect.runPromise(outbox.take)
      sizes.add(batch.length)
      taken.push(...batch)
    }
    assert.deepStrictEqual(
      taken,
      Array.from({ length: 3_000 }, (_, item) => item)
    )
    assert.isAtMost(Math.max(...sizes), 3)
    assert.strictEqual(outbox.bytes, 0)
  })

  it("closes a client of a machine that takes no more as a slow one", () => {
    const outbox = new SendQueue<ToClient>(1_000)
    const closed: Array<number> = []
    const client = new RemoteClient(1, outbox, 100, () => undefined)
    client.listener = {
      received: () => undefined,
      drained: () => undefined,
      closed: (code) => void closed.push(code)
    }
    assert.isFalse(client.send("x".repeat(101)))
    assert.isTrue(client.send("more"))
    assert.deepStrictEqual(closed, [4013])
    assert.strictEqual(client.bufferedBytes, 0)
    const items = Effect.runSync(outbox.take)
    assert.deepStrictEqual(
      items.map(({ _tag }) => _tag),
      ["Frame", "Close"]
    )
  })

  it("closes a client here whose session's home takes no more, and tells the home", () => {
    const link = new RelayLink({ ...limits, clusterWaitingBytes: 400 })
    const socket = new ClientSocket()
    const listener = link.serve("ses_0000000000000000000000", key, socket)
    for (let sent = 0; sent < 5; sent++) listener.received("x".repeat(100))
    assert.deepStrictEqual(socket.closed, { code: 1012, reason: "overloaded" })
    const items: ReadonlyArray<ToHome> = Effect.runSync(link.outbox.take)
    assert.deepStrictEqual(
      items.map(({ _tag }) => _tag),
      ["Open", "Frame", "Frame", "Closed"]
    )
  })
})
