import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { ConfigChanges } from "#src/Config.ts"
import { AccountsServer } from "#test/accounts/AccountsServer.ts"
import type { Reachable } from "#test/integration/ApiClient.ts"
import { until } from "#test/integration/Until.ts"
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

/** The whole server in this process, over a scripted upstream, with waits that a test can sit out. */
export class ScriptedServer extends Context.Service<
  ScriptedServer,
  {
    readonly server: Reachable
    readonly upstream: ScriptedUpstream
    readonly caller: (usd: number) => Promise<Caller>
    /** waits until nothing is held or leased for the user any more, and every call of theirs is settled */
    readonly settled: (caller: Caller, spentPico: bigint) => Promise<void>
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
              AccountsServer.layer({
                upstreamUrl: upstream.url,
                ...changes,
                limits: { ...shortWaits, ...changes.limits }
              })
            )
          )
      )
    )
}

const shortWaits = {
  firstTokenMillis: 600,
  streamSilenceMillis: 600,
  plainAnswerMillis: 600,
  breakerFailures: 1_000_000,
  creditLeaseIdleMillis: 200
}

const make = (upstream: ScriptedUpstream) =>
  Effect.gen(function* () {
    const { adminKey, url } = yield* AccountsServer
    const sql = yield* SqlClient
    const server: Reachable = { url, adminKey: () => adminKey }

    const differences = async ({ userId }: Caller, spentPico: bigint): Promise<string | undefined> => {
      const [row] = await Effect.runPromise(
        sql<{
          settled: string
          leased: string
        }>`SELECT settled::text, leased::text FROM limits WHERE id = ${`credits:${userId}`}`
      )
      const { leased = "0", settled = "0" } = row ?? {}
      return settled === String(spentPico) && leased === "0"
        ? undefined
        : `settled ${settled} of ${spentPico} pico-USD, ${leased} leased`
    }
    return {
      server,
      upstream,
      caller: (usd: number) => makeCaller(server, usd),
      settled: (caller: Caller, spentPico: bigint) =>
        until("everything is settled and given back", () => differences(caller, spentPico))
    }
  })
