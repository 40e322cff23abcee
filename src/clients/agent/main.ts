import { Effect, Layer } from "effect"
import { CliError, Command } from "effect/cli"
import { exitCodeOf, faultText, isJson, layer as commandLine, withWords } from "../CommandLine.ts"
import { codeOfError } from "./CodeOfError.ts"
import { joinResume, agentFlags } from "./commands/Flags.ts"
import { rootOf } from "./connection/ServerRest.ts"
import { hideEnvironment } from "./hideEnvironment.mjs"
import { exitCodesText } from "./ExitCodes.ts"
import { doctor } from "./commands/DoctorCommand.ts"
import { login } from "./commands/LoginCommand.ts"
import { permissions } from "./commands/PermissionsCommand.ts"
import { runAgent } from "./commands/RunAgent.ts"
import { sessions } from "./commands/SessionsCommand.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"
import packageJson from "../../../package.json" with { type: "json" }

const description = `Work on the files of a directory with an agent that thinks on a Signalbox server. Everything it does to this machine is done here, within this machine's rules.

${exitCodesText}

The key is never an argument: it comes from SIGNALBOX_KEY or from the file that \`login\` writes.`

const agent = Command.make(
  "signalbox-agent",
  agentFlags,
  Effect.fnUntraced(function* (flags) {
    process.exitCode = yield* Effect.tryPromise({ try: () => runAgent(flags), catch: (error) => error })
  })
).pipe(
  Command.withDescription(description),
  Command.withExamples([
    { command: "signalbox-agent", description: "Talk with the agent about this directory" },
    {
      command: "git diff | signalbox-agent -p 'review this'",
      description: "One prompt, with what is piped in"
    },
    {
      command: "signalbox-agent -p 'fix the tests' --allow commit",
      description: "Let it commit without asking"
    },
    { command: "signalbox-agent --resume", description: "Go on with the latest session of this directory" }
  ]),
  Command.withSubcommands([login, doctor, permissions, sessions])
)

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
