import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

type Environment = Readonly<Record<string, string | undefined>>

/** A relative path would lie in the workspace, where the agent writes. Source: XDG Base Directory Specification. */
const base = (value: string | undefined, fallback: string): string =>
  join(value !== undefined && isAbsolute(value) ? value : join(homedir(), fallback), "signalbox-agent")

/** The directory of the server's address, the key and lasting approvals. */
export const configDirectory = (environment: Environment): string =>
  base(environment.XDG_CONFIG_HOME, ".config")

/** The directory of the journals and the history of prompts. */
export const stateDirectory = (environment: Environment): string =>
  base(environment.XDG_STATE_HOME, ".local/state")
