import type { Command } from "effect/cli"
import { collections } from "./CollectionsCommand.ts"
import { credits } from "./CreditsCommand.ts"
import { ledger } from "./LedgerCommand.ts"
import { markups } from "./MarkupsCommand.ts"
import { plans } from "./PlansCommand.ts"
import { sandboxUpstream } from "./SandboxUpstreamCommand.ts"
import { subscriptions } from "./SubscriptionsCommand.ts"

/** Commands of `signalbox` for this room. */
export const commands: ReadonlyArray<Command.Command.Any> = [
  collections,
  credits,
  plans,
  subscriptions,
  markups,
  ledger,
  sandboxUpstream
]
