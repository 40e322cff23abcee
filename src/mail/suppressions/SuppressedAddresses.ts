import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { SuppressionReason } from "#streams/mail/SuppressionPattern.ts"
import { Suppressions } from "./Suppressions.ts"

/** A recipient of an owner's mail. */
interface Addressed {
  readonly owner: string
  readonly address: string
  readonly isBulk: boolean
}

/** Tells why addresses are suppressed, in their order; undefined: they are not. An owner's are looked up by one statement. */
export const makeReasons = Effect.map(
  Suppressions,
  (suppressions) =>
    (asks: ReadonlyArray<Addressed>): Effect.Effect<ReadonlyArray<SuppressionReason | undefined>, SqlError> =>
      Effect.gen(function* () {
        const reasons = new Map<Addressed, SuppressionReason>()
        const alike = Map.groupBy(asks, ({ isBulk, owner }) => `${isBulk ? "bulk" : "all"} ${owner}`)
        for (const some of alike.values()) {
          const [first] = some
          if (first === undefined) continue
          const addresses = some.map(({ address }) => address)
          const found = yield* suppressions.of(first.owner, addresses, first.isBulk)
          for (const ask of some) {
            const reason = found.get(ask.address)
            if (reason !== undefined) reasons.set(ask, reason)
          }
        }
        return asks.map((ask) => reasons.get(ask))
      })
)
