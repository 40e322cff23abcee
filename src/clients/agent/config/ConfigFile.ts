import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { ConfigurationProblem } from "./UsageProblem.ts"

/** The file that `signalbox-agent login` writes, and a user may extend. */
export const AgentConfig = Schema.Struct({
  url: Schema.String,
  key: Schema.String,
  sandbox: Schema.optionalKey(Schema.Literals(["auto", "off"])),
  network: Schema.optionalKey(Schema.Literals(["ask", "off"]))
})
export type AgentConfig = typeof AgentConfig.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(AgentConfig))
const othersBits = 0o077

export const configFile = (directory: string): string => join(directory, "config.json")

const openIfThere = (path: string): number | undefined => {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
    throw new ConfigurationProblem(`${path} cannot be read: ${String(error)}`)
  }
}

/** undefined where there is none. Throws `ConfigurationProblem` where others may read it, or it is not understood. */
export const readConfig = (directory: string): AgentConfig | undefined => {
  const path = configFile(directory)
  const file = openIfThere(path)
  if (file === undefined) return undefined
  try {
    const { mode, uid } = fstatSync(file)
    const isOwn = process.getuid === undefined || uid === process.getuid()
    if (process.platform !== "win32" && (!isOwn || (mode & othersBits) !== 0)) {
      throw new ConfigurationProblem(
        `${path} holds a key, and others than you may read or write it. Make it yours alone: chmod 600 ${path}`
      )
    }
    const config = decode(readFileSync(file, "utf8"))
    if (config._tag === "Some") return config.value
    throw new ConfigurationProblem(`${path} is not understood. Write it anew: signalbox-agent login`)
  } finally {
    closeSync(file)
  }
}

/** Puts the file in place whole, readable by its owner alone from its first byte on. */
export const writeConfig = (directory: string, config: AgentConfig): void => {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const draft = `${configFile(directory)}.${process.pid}`
  const file = openSync(draft, "wx", 0o600)
  try {
    fchmodSync(file, 0o600)
    writeFileSync(file, `${JSON.stringify(config, null, 2)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, configFile(directory))
}
