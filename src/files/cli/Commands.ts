import type { Command } from "effect/cli"

/** The commands of shared files. */
export const commands: ReadonlyArray<Command.Command.Any> = []
