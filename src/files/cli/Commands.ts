import type { Command } from "effect/cli"
import { devices } from "./DeviceCommands.ts"
import { login, logout } from "./LoginCommand.ts"

/** The commands of shared files. */
export const commands: ReadonlyArray<Command.Command.Any> = [login, logout, devices]
