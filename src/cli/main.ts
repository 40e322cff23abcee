import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { admin } from "./AdminCommand.ts"
import { collections } from "./CollectionsCommand.ts"
import { Connection } from "./Connection.ts"
import { credits } from "./CreditsCommand.ts"
import { importCommand } from "./ImportCommand.ts"
import { keys } from "./KeysCommand.ts"
import { ledger } from "./LedgerCommand.ts"
import { log } from "./LogCommand.ts"
import { markups } from "./MarkupsCommand.ts"
import { plans } from "./PlansCommand.ts"
import { rebuildCommand } from "./RebuildCommand.ts"
import { sandboxUpstream } from "./SandboxUpstreamCommand.ts"
import { sites } from "./SitesCommand.ts"
import { status } from "./StatusCommand.ts"
import { subscriptions } from "./SubscriptionsCommand.ts"
import { users } from "./UsersCommand.ts"

/**
 * `signalbox`: the HTTP API from a terminal. Exit codes: 0 done; 1 refused by the server, misused, or a check that
 * found differences; 69 no answer; 78 no server is known.
 */
const signalbox = Command.make("signalbox").pipe(
  Command.withDescription("Manage a Signalbox server"),
  Command.withSubcommands([
    status,
    users,
    keys,
    sites,
    collections,
    credits,
    plans,
    subscriptions,
    markups,
    ledger,
    log,
    admin,
    importCommand,
    rebuildCommand,
    sandboxUpstream
  ])
)

signalbox.pipe(
  Command.run({ version: packageJson.version }),
  Effect.provide(Layer.merge(Connection.layer, NodeServices.layer)),
  NodeRuntime.runMain
)
