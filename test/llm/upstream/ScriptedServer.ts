import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { ConfigChanges } from "#src/Config.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import type { Reachable } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { type Caller, makeCaller } from "../Caller.ts"
import { type ScriptedUpstream, startScriptedUpstream } from "./ScriptedUpstream.ts"

/** USD per token of every scripted model, before the markup of 2 %. */
export const scriptedPrices = { prompt: "0.000001", completion: "0.000002" }

/** An entry of an upstream's list. */
export const modelEntry = (id: string, more: object = {}): object => ({
  id,
  name: id,
  created: 1_767_225_600,
  description: "A scripted model",
  context_length: 100_000,
  architecture: { modality: "text->text", input_modalities: ["text"], output_modalities: ["text"] },
  pricing: scriptedPrices,
  top_provider: { max_completion_tokens: null },
  supported_parameters: ["max_tokens", "tools"],
  ...more
})

/** For upstreams that say nothing: waits that a test can sit out. */
export const waitsOf = (millis: number) => ({
  firstTokenMillis: millis,
  lastFirstTokenMillis: millis,
  streamSilenceMillis: millis,
  plainAnswerMillis: millis
})

/** The whole server in this process, over a scripted upstream. */
export class ScriptedServer extends Context.Service<
  ScriptedServer,
  {
    readonly server: Reachable
    readonly upstream: ScriptedUpstream
    readonly caller: (usd: number) => Promise<Caller>
    /** waits until nothing is held or leased for these users any more, and their joint spending is settled */
    readonly settled: (callers: ReadonlyArray<Caller>, spentPico: bigint) => Promise<void>
  }
>()("signalbox/test/ScriptedServer") {
  static readonly layer = (models: ReadonlyArray<object>, changes: ConfigChanges = {}) =>
    Layer.unwrap(
      Effect.map(
        Effect.acquireRelease(
          Effect.promise(() => startScriptedUpstream({ models })),
          (upstream) => Effect.promise(upstream.close)
        ),
        (upstream) =>
          Layer.effect(ScriptedServer, make(upstream)).pipe(
            Layer.provideMerge(
              TestServer.own({
                upstreamUrl: upstream.url,
                ...changes,
                limits: { ...patient, ...changes.limits }
              })
            )
          )
      )
    )
}

/** No breaker opens, since faults are asked for again and again; leases come back soon, and so do calls that were left. */
const patient = { breakerFailures: 1_000_000, ledgerIdleMillis: 200, usageWaitMillis: 500 }

const make = (upstream: ScriptedUpstream) =>
  Effect.gen(function* () {
    const { adminKey, url } = yield* TestServer
    const sql = yield* SqlClient
    const server: Reachable = { url, adminKey: () => adminKey }

    const differences = async (
      callers: ReadonlyArray<Caller>,
      spentPico: bigint
    ): Promise<string | undefined> => {
      const ids = callers.map(({ userId }) => `credits:${userId}`)
      const [row] = await Effect.runPromise(
        sql<{ settled: string; leased: string }>`
          SELECT coalesce(sum(settled), 0)::text AS settled, coalesce(sum(leased), 0)::text AS leased
          FROM limits WHERE ${sql.in("id", ids)}`
      )
      return row?.settled === String(spentPico) && row.leased === "0"
        ? undefined
        : `settled ${row?.settled} of ${spentPico} pico-USD, ${row?.leased} leased`
    }
    return {
      server,
      upstream,
      caller: (usd: number) => makeCaller(server, usd),
      settled: (callers: ReadonlyArray<Caller>, spentPico: bigint) =>
        until("everything is settled and given back", () => differences(callers, spentPico))
    }
  })
