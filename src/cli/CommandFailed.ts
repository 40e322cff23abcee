import { Runtime, Schema } from "effect"
import { CliError } from "effect/cli"
import { exitCodes } from "#src/clients/ExitCodes.ts"

/** A command could not do its work, for a reason on this machine. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = exitCodes.failed
  override get [CliError.userMessage](): string {
    return this.problem
  }
}
