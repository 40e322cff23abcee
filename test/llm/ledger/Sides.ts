import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KeyDirectory } from "#src/accounts/Keys.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { LimitStore } from "#src/llm/ledger/LimitStore.ts"
import { Plans } from "#src/llm/ledger/Plans.ts"
import { SubscriptionDirectory } from "#src/llm/ledger/SubscriptionDirectory.ts"
import { ledgerLayer, refresh, withOwnLog } from "./LedgerProbe.ts"

/** A ledger beside others on the same Postgres: an owner of its own, as another process would be. */
export interface Side {
  readonly ledger: Ledger["Service"]
  readonly calls: CallLog["Service"]
  readonly store: LimitStore["Service"]
  /** brings keys, plans and subscriptions up to date */
  readonly refresh: Effect.Effect<void>
}

export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-ledger-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** As long as the scope lives; the log in `dataDir` stays. */
export const sideIn = Effect.fnUntraced(function* (dataDir: string) {
  const built = yield* Layer.build(Layer.fresh(ledgerLayer).pipe(Layer.provide(withOwnLog(dataDir))))
  const directories = Context.pick(KeyDirectory, Plans, SubscriptionDirectory)(built)
  const side: Side = {
    ledger: Context.get(built, Ledger),
    calls: Context.get(built, CallLog),
    store: Context.get(built, LimitStore),
    refresh: Effect.orDie(Effect.provideContext(refresh, directories))
  }
  return side
})

export const side = Effect.flatMap(temporaryDirectory, sideIn)
