import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Runtime } from "effect"
import { Command } from "effect/cli"
import { rooms } from "../Rooms.ts"
import { commandsOf, signalboxOf } from "./Signalbox.ts"
import packageJson from "../../package.json" with { type: "json" }
import * as CommandLine from "../clients/CommandLine.ts"
import { exitCodeOf, isShown, withWords } from "../clients/CommandLine.ts"
import { Connection } from "./Connection.ts"

const args = process.argv.slice(2)
const signalbox = signalboxOf(await commandsOf(rooms))

/** A failure without words for a person is a fault of this program, and is shown as it is. */
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

// The list loses its requirements: all of them are provided here.
const run = Command.runWith(signalbox, { version: packageJson.version })(
  withWords(signalbox, args)
) as Effect.Effect<void, unknown, Connection | Command.Environment>

run.pipe(
  Effect.tapCause(showRest),
  Effect.provide(Layer.mergeAll(Connection.layer, NodeServices.layer, CommandLine.layer("signalbox", args))),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown })
)
