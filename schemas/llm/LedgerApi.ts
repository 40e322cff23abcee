import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { Faults } from "../core/Faults.ts"
import { RateLimit } from "../core/RateLimit.ts"
import { Timestamp } from "../core/Timestamp.ts"

const pico = Schema.String.annotate({ description: "10^-12 USD, a whole number as text" })

const LedgerDifference = Schema.Struct({
  limit: Schema.String.annotate({
    description: "credits:<user>, key:<key> or allowance:<subscription>:<hour|day|week>"
  }),
  windowStart: Schema.NullOr(Timestamp),
  what: Schema.Literals(["settled", "cap", "leased"]),
  expected: Schema.NullOr(Schema.String).annotate({ description: "By the entries, keys, plans and leases" }),
  found: Schema.NullOr(Schema.String)
}).annotate({ identifier: "LedgerDifference" })

export const LedgerVerdict = Schema.Struct({
  ok: Schema.Boolean.annotate({
    description: "Every balance, cap, allowance and lease is what the entries say"
  }),
  toppedUp: pico,
  charged: pico,
  loss: pico.annotate({
    description: "What calls cost above what could be taken: the platform's, in 10^-12 USD"
  }),
  leased: pico.annotate({ description: "Of credits, by server processes, in 10^-12 USD" }),
  entries: Schema.String.annotate({ description: "Number of entries" }),
  differenceCount: Schema.Int,
  differences: Schema.Array(LedgerDifference).annotate({ description: "The first hundred" })
}).annotate({ identifier: "LedgerVerdict", description: "The ledger, recomputed from its entries" })
export type LedgerVerdict = typeof LedgerVerdict.Type

/** The ledger as a whole, for administrators. Flat error family. */
export class LedgerApi extends HttpApiGroup.make("ledger")
  .add(
    HttpApiEndpoint.get("verifyLedger", "/ledger/verify", { success: LedgerVerdict })
      .annotate(OpenApi.Summary, "Verify the ledger")
      .annotate(
        OpenApi.Description,
        "Calls that have ended on the server that is asked are booked first; what other servers have not booked is leased."
      )
  )
  .middleware(AdministratorsOnly)
  .middleware(RateLimit)
  .middleware(Authorization)
  .middleware(Faults)
  .annotateMerge(OpenApi.annotations({ title: "Ledger", description: "For account keys of administrators." }))
  .prefix("/api/v1/admin") {}
