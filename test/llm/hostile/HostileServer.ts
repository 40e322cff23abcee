import { ManagedRuntime } from "effect"
import { assert } from "@effect/vitest"
import { SqlClient } from "effect/sql/SqlClient"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { type Caller, makeCaller } from "../Caller.ts"
import { modelEntry } from "../upstream/ScriptedServer.ts"
import { type ScriptedUpstream, startScriptedUpstream } from "../upstream/ScriptedUpstream.ts"

/** The ledger's entry for one call. Amounts are pico-USD. */
export interface Booked {
  readonly charge: bigint
  readonly loss: bigint
  readonly estimates: ReadonlyArray<{ readonly reason: string; readonly amount: bigint }>
}

/**
 * A server process over a scripted upstream, with a user who is hostile, or whose upstream is, and another one who has to
 * notice nothing of it. Calls are found by what they ask for: a made-up name beside a list of models.
 */
export interface HostileServer {
  readonly server: ServerProcess
  readonly upstream: ScriptedUpstream
  readonly hostile: Caller
  readonly other: Caller
  /** by the model that was asked for, of the hostile user's calls that have ended; the ledger is flushed before */
  readonly booked: () => Promise<ReadonlyMap<string, Booked>>
  /** waits until no call is under way any more */
  readonly rest: () => Promise<void>
  /** the other user is served, in every room that answers to models, with current answers */
  readonly assertOtherIsServed: () => Promise<void>
  /** `ledger verify` holds */
  readonly assertLedgerHolds: () => Promise<void>
  /** kills the process and starts it again; answers the milliseconds that it took to be ready */
  readonly restart: () => Promise<number>
  readonly close: () => Promise<void>
}

/** Its upstream answers well, for the other user. */
export const honestModel = "honest/model"

const reads = ["models", "usage", "usage?window=day", "credits", "key", "keys", "collections", "subscription"]

export const startHostile = async (models: ReadonlyArray<object>, usd: number): Promise<HostileServer> => {
  const runtime = ManagedRuntime.make(TestStores.layer)
  const { clickhouseUrl, databaseUrl } = await runtime.runPromise(TestStores)
  const sql = await runtime.runPromise(SqlClient)
  const clickhouse = await runtime.runPromise(ClickHouse)
  const upstream = await startScriptedUpstream({ models: [...models, modelEntry(honestModel)] })
  const env = {
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    UPSTREAM_URL: upstream.url,
    ROOMS: "llm"
  }
  const server = await startServer({ env })
  const [hostile, other] = [await makeCaller(server, usd), await makeCaller(server, 10)]

  const assertLedgerHolds = async (): Promise<void> => {
    const { body, status } = await ask(server, "GET", "/api/v1/admin/ledger/verify")
    assert.strictEqual(status, 200, JSON.stringify(body))
    assert.deepInclude(body, { ok: true, differences: [] })
  }

  const callsOf = async () => {
    const { status } = await ask(server, "GET", "/api/v1/usage", { key: hostile.key })
    assert.strictEqual(status, 200, "calls are counted")
    return runtime.runPromise(
      clickhouse.query<{ readonly id: string; readonly requested: string }>(
        "SELECT id, requested FROM calls WHERE user_id = {user:String}",
        { user: hostile.userId }
      )
    )
  }

  return {
    server,
    upstream,
    hostile,
    other,
    assertLedgerHolds,
    rest: () =>
      until("no call is under way", async () => {
        const metrics = await (await fetch(`${server.url}/metrics`)).text()
        return /^signalbox_model_requests_in_flight 0$/m.test(metrics) ? undefined : "some are"
      }),
    booked: async () => {
      await assertLedgerHolds()
      const entries = await runtime.runPromise(
        sql<{ id: string; charge: string; loss: string }>`SELECT request_id AS id,
          coalesce(sum(amount) FILTER (WHERE kind = 'charge'), 0)::text AS charge,
          coalesce(sum(amount) FILTER (WHERE kind LIKE 'loss%'), 0)::text AS loss
          FROM entries WHERE user_id = ${hostile.userId} GROUP BY request_id`
      )
      const estimates = await runtime.runPromise(
        sql<{ id: string; reason: string; amount: string }>`SELECT request_id AS id, reason, amount::text
          FROM cost_estimates WHERE user_id = ${hostile.userId}`
      )
      const sums = new Map(entries.map((entry) => [entry.id, entry]))
      const guesses = Map.groupBy(estimates, ({ id }) => id)
      return new Map(
        (await callsOf()).map(({ id, requested }) => [
          requested,
          {
            charge: BigInt(sums.get(id)?.charge ?? 0),
            loss: BigInt(sums.get(id)?.loss ?? 0),
            estimates: (guesses.get(id) ?? []).map(({ amount, reason }) => ({
              reason,
              amount: BigInt(amount)
            }))
          }
        ])
      )
    },
    assertOtherIsServed: async () => {
      for (const path of reads) {
        const { body, status } = await ask(server, "GET", `/api/v1/${path}`, { key: other.key })
        assert.strictEqual(status, 200, `${path}: ${JSON.stringify(body)}`)
      }
      const before = (await other.credits()).lifetime_spent_usd
      const answer = await other.say(honestModel, "Are you there?", { max_tokens: 10 })
      assert.deepStrictEqual([answer.status, answer.text], [200, "I am here."], answer.raw)
      const paid = answer.router?.charged_usd ?? 0
      await until("what the other one has spent is current", async () => {
        const { lifetime_spent_usd: spent } = await other.credits()
        return Math.abs(spent - before - paid) < 1e-12 ? undefined : `${before}, ${paid}, ${spent}`
      })
    },
    restart: async () => {
      await server.stop("SIGKILL")
      const from = performance.now()
      await server.start()
      return Math.round(performance.now() - from)
    },
    close: async () => {
      await server.dispose()
      await upstream.close()
      await runtime.dispose()
    }
  }
}
