import type { Command } from "effect/cli"
import { admin } from "./AdminCommand.ts"
import { keys } from "./KeysCommand.ts"
import { log } from "./LogCommand.ts"
import { status } from "./StatusCommand.ts"
import { users } from "./UsersCommand.ts"

/** Commands of `signalbox` for this room. */
export const commands: ReadonlyArray<Command.Command.Any> = [status, users, keys, log, admin]
