import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { CliError, Command } from "effect/cli"
import packageJson from "../../../package.json" with { type: "json" }
import { exitCodeOf, faultText, isJson, layer as commandLine, withWords } from "../CommandLine.ts"
import { codeOfError } from "./CodeOfError.ts"
import { agent } from "./commands/AgentCommand.ts"
import { joinResume } from "./commands/Flags.ts"
import { rootOf } from "./connection/ServerRest.ts"
import { hideEnvironment } from "./hideEnvironment.mjs"

const args = process.argv.slice(2)

/** Wrong usage was shown already. */
const fail = (error: unknown): void => {
  if (CliError.isCliError(error)) {
    process.exitCode = exitCodeOf(error)
    return
  }
  process.exitCode = codeOfError(error)
  const text = faultText(isJson(args), `signalbox-agent: ${rootOf(error)}`, process.exitCode)
  process.stderr.write(`${text}\n`)
}

try {
  hideEnvironment()
} catch (error) {
  // A system without /proc, or one that lets no process write to its own memory: doctor says so.
  if (!(error instanceof Error && "code" in error)) throw error
}

await Effect.runPromise(
  Command.runWith(agent, { version: packageJson.version })(joinResume(withWords(agent, args))).pipe(
    Effect.catch((error) => Effect.sync(() => fail(error))),
    Effect.provide(Layer.merge(NodeServices.layer, commandLine("signalbox-agent", args)))
  )
)
