import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Runtime } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import * as CommandLine from "../clients/CommandLine.ts"
import { exitCodeOf, isShown, withWords } from "../clients/CommandLine.ts"
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

const description = `Manage a Signalbox server

Exit codes: 0 done; 1 refused by the server, or a check that found something; 2 called wrongly; 69 no answer from the server; 77 the key is refused; 78 no server is known. With --json faults are one line of JSON on stderr.`

/** `signalbox`: the HTTP API from a terminal. */
const signalbox = Command.make("signalbox").pipe(
  Command.withDescription(description),
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

const args = process.argv.slice(2)

/** What nobody has put into words for a person is a fault of this program, and is shown as it is. */
const showRest = (cause: Cause.Cause<unknown>) =>
  Effect.suspend(() => {
    const error = Cause.squash(cause)
    if (Cause.hasInterruptsOnly(cause) || isShown(error)) return Effect.void
    return Console.error(`signalbox: ${Cause.pretty(cause)}`)
  })

const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
    ? onExit(exitCodeOf(Cause.squash(exit.cause)))
    : Runtime.defaultTeardown(exit, onExit)

Command.runWith(signalbox, { version: packageJson.version })(withWords(signalbox, args)).pipe(
  Effect.tapCause(showRest),
  Effect.provide(Layer.mergeAll(Connection.layer, NodeServices.layer, CommandLine.layer("signalbox", args))),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown })
)
