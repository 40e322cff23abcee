import type { Command } from "effect/cli"
import { importCommand } from "./ImportCommand.ts"
import { rebuildCommand } from "./RebuildCommand.ts"
import { sites } from "./SitesCommand.ts"

/** What `signalbox` does for this room. */
export const commands: ReadonlyArray<Command.Command.Any> = [sites, importCommand, rebuildCommand]
