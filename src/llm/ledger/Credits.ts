import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { PicoUsd } from "#schemas/llm/Money.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { Ledger } from "./Ledger.ts"
import { capOf, creditsOf } from "./Payment.ts"

export interface CreditSums {
  readonly balance: PicoUsd
  readonly lifetimeToppedUp: PicoUsd
  readonly lifetimeSpent: PicoUsd
}

/** Users' credits and keys' spending, calls included that have ended on this server. */
export class Credits extends Context.Service<
  Credits,
  {
    readonly of: (userId: string) => Effect.Effect<CreditSums, SqlError>
    readonly spentBy: (keyId: string) => Effect.Effect<PicoUsd, SqlError>
  }
>()("signalbox/llm/Credits") {
  static readonly layer = Layer.effect(
    Credits,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { flush } = yield* Ledger
      // If Postgres does not take ended calls, it does not answer the next query either.
      const booked = Effect.catch(flush, ({ problem }: SinkUnavailable) =>
        Effect.logDebug(`calls are not booked yet: ${problem}`)
      )
      const row = (id: string) =>
        Effect.andThen(
          booked,
          Effect.map(
            sql<Row>`SELECT cap::text, settled::text FROM limits WHERE id = ${id} AND window_start = 'epoch'`,
            (rows) => ({ cap: BigInt(rows[0]?.cap ?? 0), settled: BigInt(rows[0]?.settled ?? 0) })
          )
        )
      return Credits.of({
        of: (userId) =>
          Effect.map(row(creditsOf(userId)), ({ cap, settled }) => ({
            balance: cap - settled,
            lifetimeToppedUp: cap,
            lifetimeSpent: settled
          })),
        spentBy: (keyId) => Effect.map(row(capOf(keyId)), ({ settled }) => settled)
      })
    })
  )
}

interface Row {
  readonly cap: string | null
  readonly settled: string
}
