import type { Command } from "effect/cli"
import { noun } from "#src/cli/Noun.ts"
import { devices } from "./DeviceCommands.ts"
import { getFile, getLink } from "./GetCommands.ts"
import { login, logout } from "./LoginCommand.ts"
import { putFiles } from "./PutCommand.ts"
import { send } from "./SendCommand.ts"
import { share } from "./ShareCommand.ts"
import { treeVerbs } from "./TreeVerbs.ts"

/** The commands of shared files. */
export const commands: ReadonlyArray<Command.Command.Any> = [
  noun("files", "Download and upload shared files", [getFile, putFiles, ...treeVerbs]),
  getLink,
  share,
  devices,
  send,
  login,
  logout
]
