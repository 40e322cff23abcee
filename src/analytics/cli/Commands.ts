import type { Command } from "effect/cli"
import { importCommand } from "./ImportCommand.ts"
import { rebuildCommand } from "./RebuildCommand.ts"
import { sites } from "./SitesCommand.ts"

/** The room's commands of `signalbox`. */
export const commands: ReadonlyArray<Command.Command.Any> = [sites, importCommand, rebuildCommand]
