import { Effect } from "effect"
import { Command } from "effect/cli"
import { exitCodesText } from "../ExitCodes.ts"
import { agentFlags } from "./Flags.ts"
import { doctor } from "./DoctorCommand.ts"
import { login } from "./LoginCommand.ts"
import { permissions } from "./PermissionsCommand.ts"
import { runAgent } from "./RunAgent.ts"
import { sessions } from "./SessionsCommand.ts"

const description = `Work on the files of a directory with an agent that thinks on a Signalbox server. Everything it does to this machine is done here, within this machine's rules.

${exitCodesText}

The key is never an argument: it comes from SIGNALBOX_KEY or from the file that \`login\` writes.`

export const agent = Command.make(
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
