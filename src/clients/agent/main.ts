import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { CliError, Command } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import { agent } from "./commands/AgentCommand.ts"
import { joinResume } from "./commands/Flags.ts"
import { UsageProblem } from "./config/UsageProblem.ts"
import { ConnectionClosed } from "./connection/ConnectionClosed.ts"
import { rootOf } from "./connection/ServerRest.ts"
import { codeOfClosed, exitCodes } from "./ExitCodes.ts"
import { hideEnvironment } from "./hideEnvironment.mjs"

const codeOf = (error: unknown): number => {
  if (error instanceof ConnectionClosed) return codeOfClosed(error.reason)
  if (error instanceof UsageProblem) return exitCodes.usage
  return exitCodes.error
}

/** Wrong usage was shown with the help already. */
const fail = (error: unknown): void => {
  if (CliError.isCliError(error)) {
    process.exitCode = error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : exitCodes.usage
    return
  }
  process.stderr.write(`signalbox-agent: ${rootOf(error)}\n`)
  process.exitCode = codeOf(error)
}

try {
  hideEnvironment()
} catch (error) {
  // A system without /proc, or one that lets no process write to its own memory: doctor says so.
  if (!(error instanceof Error && "code" in error)) throw error
}

await Effect.runPromise(
  Command.runWith(agent, { version: packageJson.version })(joinResume(process.argv.slice(2))).pipe(
    Effect.catch((error) => Effect.sync(() => fail(error))),
    Effect.provide(NodeServices.layer)
  )
)
