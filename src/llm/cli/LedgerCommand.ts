import { Effect, Runtime, Schema } from "effect"
import { CliError, Command } from "effect/cli"
import type { LedgerVerdict } from "#schemas/llm/LedgerApi.ts"
import { Connection } from "#src/cli/Connection.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"

/** Balances, caps, allowances or leases differ from the entries. */
export class LedgerDiffers extends Schema.TaggedError<LedgerDiffers>()("LedgerDiffers", {
  count: Schema.Int
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return `${this.count} numbers of the ledger are not what its entries say`
  }
}

const columns = ["limit", "windowStart", "what", "expected", "found"]

const byReason = (what: string, sums: LedgerVerdict["losses"]): string =>
  sums.map(({ amount, calls, reason }) => `\n${what} ${reason}: ${amount} pico-USD, ${calls} calls`).join("")

const words = (verdict: LedgerVerdict): string => {
  const { charged, differences, entries, estimates, leased, loss, losses, ok, toppedUp } = verdict
  const sums = `${entries} entries; pico-USD topped up ${toppedUp}, charged ${charged}, lost ${loss}, leased ${leased}`
  const reasons = byReason("Lost,", losses) + byReason("Estimated,", estimates)
  return ok
    ? `${sums}; every balance is right${reasons}`
    : `${sums}${reasons}\n${tableOf(columns, differences)}`
}

const verify = Command.make(
  "verify",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const { ask } = yield* Connection
    const verdict = yield* ask((client) => client.ledger.verifyLedger())
    yield* show(json, verdict, words)
    if (!verdict.ok) return yield* new LedgerDiffers({ count: verdict.differenceCount })
  })
).pipe(Command.withDescription("Recompute every balance, cap, allowance and lease from the entries"))

export const ledger = Command.make("ledger").pipe(
  Command.withDescription("Check the ledger (administrators)"),
  Command.withSubcommands([verify])
)
