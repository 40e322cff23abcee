import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { dayMillis } from "#streams/analytics/EventTime.ts"

/** Postgres did not give or take a salt. */
export class SaltStoreUnavailable extends Schema.TaggedError<SaltStoreUnavailable>()("SaltStoreUnavailable", {
  cause: Schema.Defect()
}) {}

/** The store through which the processes of a server agree on the salt of a day. */
export class SaltStore extends Context.Service<
  SaltStore,
  {
    /** Offers a salt for a day and answers the one that holds: the first offered. */
    readonly agree: (day: number, offered: Uint8Array) => Effect.Effect<Uint8Array, SaltStoreUnavailable>
    /** Deletes the salts of all days before this one. */
    readonly forgetBefore: (day: number) => Effect.Effect<void, SaltStoreUnavailable>
  }
>()("signalbox/analytics/SaltStore") {
  static readonly layer = Layer.effect(
    SaltStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const unavailable = Effect.mapError((cause: unknown) => new SaltStoreUnavailable({ cause }))
      return SaltStore.of({
        agree: (day, offered) =>
          Effect.gen(function* () {
            const date = dateOf(day)
            yield* sql`INSERT INTO salts (day, salt) VALUES (${date}::date, ${offered}) ON CONFLICT (day) DO NOTHING`
            const [row] = yield* sql<{ salt: Uint8Array }>`SELECT salt FROM salts WHERE day = ${date}::date`
            // A process whose clock is ahead of ours has deleted the day in between: our salt is not shared.
            return row?.salt ?? offered
          }).pipe(unavailable),
        forgetBefore: (day) =>
          Effect.asVoid(sql`DELETE FROM salts WHERE day < ${dateOf(day)}::date`).pipe(unavailable)
      })
    })
  )
}

const dateOf = (day: number): string => new Date(day * dayMillis).toISOString().slice(0, 10)
