import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
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

const SumByReason = Schema.Struct({
  reason: Schema.String,
  calls: Schema.String.annotate({ description: "Number of calls" }),
  amount: pico
}).annotate({ identifier: "SumByReason" })

export const LedgerVerdict = Schema.Struct({
  ok: Schema.Boolean.annotate({
    description: "Every balance, cap, allowance and lease is what the entries say"
  }),
  toppedUp: pico,
  charged: pico,
  loss: pico.annotate({ description: "What nobody pays but the platform, in 10^-12 USD" }),
  losses: Schema.Array(SumByReason).annotate({
    description:
      "The loss by its reason: beyond_hold, free_model, failed_try, not_charged; unknown of old entries"
  }),
  estimates: Schema.Array(SumByReason).annotate({
    description:
      "What of charges and losses was reckoned here, by why the upstream's own figure is missing: no_usage, usage_out_of_bounds, cost_out_of_bounds, no_price, abandoned, cut, failed_try"
  }),
  leased: pico.annotate({ description: "Of credits, by server processes, in 10^-12 USD" }),
  entries: Schema.String.annotate({ description: "Number of entries" }),
  differenceCount: Schema.Int,
  differences: Schema.Array(LedgerDifference).annotate({ description: "The first hundred" })
}).annotate({ identifier: "LedgerVerdict", description: "The ledger, recomputed from its entries" })
export type LedgerVerdict = typeof LedgerVerdict.Type

/** The ledger as a whole, for administrators. Errors in the plain form. */
export class LedgerApi extends HttpApiGroup.make("ledger")
  .add(
    HttpApiEndpoint.get("verifyLedger", "/ledger/verify", { success: LedgerVerdict })
      .annotate(OpenApi.Summary, "Verify the ledger")
      .annotate(
        OpenApi.Description,
        "Calls that have ended on the server that is asked are booked first; what other servers have not booked is leased."
      )
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Ledger", description: "For account keys of administrators." }))
  .prefix("/api/v1/admin") {}
