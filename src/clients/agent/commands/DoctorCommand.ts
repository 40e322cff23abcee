import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../../../package.json" with { type: "json" }
import { keptPermissions } from "../boundary/Approvals.ts"
import { printable } from "../boundary/Printable.ts"
import { codeOfError } from "../CodeOfError.ts"
import { configFile, readConfig } from "../config/ConfigFile.ts"
import { configDirectory, stateDirectory } from "../config/Directories.ts"
import { findServer, isExposed } from "../config/FindServer.ts"
import { fetchGatewayInfo, rootOf, type ServerAddress } from "../connection/ServerRest.ts"
import { exitCodes } from "../ExitCodes.ts"
import { protections } from "../exec/Protections.ts"
import { url, workspace } from "./Flags.ts"

interface Finding {
  readonly mark: "ok" | "--" | "!!"
  readonly text: string
  /** the exit code for it */
  readonly code?: number
}

const serverOf = (given: { readonly url?: string }): ServerAddress | Finding => {
  try {
    return findServer(given, process.env, readConfig(configDirectory(process.env)))
  } catch (error) {
    return { mark: "!!", text: `server: ${rootOf(error)}`, code: exitCodes.configuration }
  }
}

const ofServer = async (server: ServerAddress): Promise<ReadonlyArray<Finding>> => {
  const exposed = isExposed(server.url)
  const way: Finding = exposed
    ? { mark: "!!", text: `way: ${server.url} is not encrypted; the key can be read on its way` }
    : { mark: "ok", text: `way: ${server.url}` }
  try {
    const { billing, default_model: model, models, protocol } = await fetchGatewayInfo(server)
    return [
      way,
      protocol === 1
        ? { mark: "ok", text: "server: answers, and speaks this client's protocol" }
        : { mark: "!!", text: `server: speaks protocol ${protocol}, not 1`, code: exitCodes.noConnection },
      { mark: "ok", text: `key: taken; paid by ${billing.plan ?? billing.mode}` },
      model === null
        ? {
            mark: "!!",
            text: `models: ${models.length}, of which this key can pay none`,
            code: exitCodes.error
          }
        : { mark: "ok", text: `models: ${models.length}, by default ${model}` }
    ]
  } catch (error) {
    return [way, { mark: "!!", text: `server: ${rootOf(error)}`, code: codeOfError(error) }]
  }
}

const ofPermissions = (): Finding => {
  const { permissions, problem } = keptPermissions(configDirectory(process.env))
  return problem === undefined
    ? {
        mark: "ok",
        text: `permissions: ${permissions.length} are kept; signalbox-agent permissions lists and revokes them`
      }
    : { mark: "!!", text: `permissions: ${problem}` }
}

/** Without a sandbox everything works, and everything is asked. */
const ofMachine = async (root: string): Promise<ReadonlyArray<Finding>> => {
  const { advice, askedFor, notProtected, protected: safe, sandbox } = await protections(root)
  return [
    sandbox.usable
      ? { mark: "ok", text: `sandbox: ${sandbox.program} ${sandbox.version}` }
      : { mark: "!!", text: `sandbox: none, so every command is asked for: ${sandbox.reason}` },
    ...safe.map((text): Finding => ({ mark: "ok", text: `protected: ${text}` })),
    ...askedFor.map((text): Finding => ({ mark: "ok", text: `asked for before it is written: ${text}` })),
    ...notProtected.map((text): Finding => ({ mark: "--", text: `not protected: ${text}` })),
    ...advice.map((text): Finding => ({ mark: "!!", text: `advice: ${text}` }))
  ]
}

const examine = async (
  given: { readonly url?: string },
  root: string
): Promise<{ readonly server: ReadonlyArray<Finding>; readonly machine: ReadonlyArray<Finding> }> => {
  const server = serverOf(given)
  const platform = `${process.platform}-${process.arch}, Node ${process.versions.node}`
  return {
    server: "url" in server ? await ofServer(server) : [server],
    machine: [
      { mark: "ok", text: `client: ${packageJson.version} (${platform})` },
      { mark: "ok", text: `configuration: ${configFile(configDirectory(process.env))}` },
      { mark: "ok", text: `journal: ${stateDirectory(process.env)}` },
      ofPermissions(),
      ...(await ofMachine(root))
    ]
  }
}

const linesOf = (findings: ReadonlyArray<Finding>): string =>
  findings.map(({ mark, text }) => printable(`${mark}  ${text}`)).join("\n")

export const doctor = Command.make(
  "doctor",
  { url, workspace },
  Effect.fnUntraced(function* (flags) {
    const given = Option.match(flags.url, { onNone: () => ({}), onSome: (url) => ({ url }) })
    const { machine, server } = yield* Effect.promise(() => examine(given, flags.workspace))
    yield* Console.log(`${linesOf(machine)}\n${linesOf(server)}`)
    // A machine without a sandbox can be worked on; without a server nothing can be done.
    process.exitCode = server.find(({ code }) => code !== undefined)?.code ?? exitCodes.completed
  })
).pipe(Command.withDescription("Show what protects this machine, and whether the server can be used"))
