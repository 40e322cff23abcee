import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { inRoom, roomLayer } from "./SandboxRoom.ts"

const live = { excludeTestServices: true } as const

interface Usage {
  readonly usage: { readonly hour: { readonly requests: number; readonly costUsd: number } }
}

layer(roomLayer, live)("An agent session that moves to another process", (it) => {
  it.effect("costs nothing for the answer that was begun and is made again", () =>
    Effect.flatMap(SqlClient, (sql) =>
      inRoom(async ({ adminKey, caller, open, url }) => {
        const { credits, key } = await caller(5)
        const first = await open(key)
        const { sessionId } = first
        // So many that the answer has not ended by itself before its process finds out: then it would be paid for.
        first.say({ type: "prompt", id: "p1", text: "words 600" })
        await first.awaits("words", ({ kind }) => kind === "text_delta")
        // As when another process claims it: the next write finds out.
        await Effect.runPromise(sql`UPDATE agent_sessions SET epoch = epoch + 1 WHERE id = ${sessionId}`)
        first.say({ type: "steer", id: "s1", text: "say More." })
        assert.strictEqual(await first.closed(), 1012)
        const second = await open(key, { resume: sessionId, lastSeq: first.seq })
        const done = await second.done("p1")
        assert.deepInclude(done, { status: "completed", turns: 1 })
        const costUsd = Number(done["costUsd"])
        const used = async () => {
          const server = { url, adminKey: () => adminKey }
          const { body } = await ask(server, "GET", "/api/v1/usage?window=hour&source=agent", { key })
          return (body as Usage).usage.hour
        }
        await until(
          "both calls are booked",
          async () => {
            const { requests } = await used()
            return requests === 2 ? undefined : String(requests)
          },
          30_000
        )
        assert.closeTo((await used()).costUsd, costUsd, 1e-9)
        assert.closeTo((await credits()).lifetime_spent_usd, costUsd, 1e-9)
      })
    )
  )
})
