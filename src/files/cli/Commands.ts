import type { Command } from "effect/cli"
import { noun } from "#src/cli/Noun.ts"
import { getFile, getLink } from "./GetCommands.ts"

/** The commands of shared files. */
export const commands: ReadonlyArray<Command.Command.Any> = [
  noun("files", "Download and upload shared files", [getFile]),
  getLink
]
