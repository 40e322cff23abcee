import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../../../package.json" with { type: "json" }
import { printable } from "../boundary/Printable.ts"
import { configFile, readConfig } from "../config/ConfigFile.ts"
import { configDirectory, stateDirectory } from "../config/Directories.ts"
import { findServer, isExposed } from "../config/FindServer.ts"
import { fetchGatewayInfo, rootOf, type ServerAddress } from "../connection/ServerRest.ts"
import { exitCodes } from "../ExitCodes.ts"
import { url } from "./Flags.ts"

interface Finding {
  readonly good: boolean
  readonly text: string
}

const serverOf = (given: { readonly url?: string }): ServerAddress | Finding => {
  try {
    return findServer(given, process.env, readConfig(configDirectory(process.env)))
  } catch (error) {
    return { good: false, text: `server: ${rootOf(error)}` }
  }
}

const ofServer = async (server: ServerAddress): Promise<ReadonlyArray<Finding>> => {
  const exposed = isExposed(server.url)
  const way: Finding = exposed
    ? { good: false, text: `way: ${server.url} is not encrypted; the key can be read on its way` }
    : { good: true, text: `way: ${server.url}` }
  try {
    const { billing, default_model: model, models, protocol } = await fetchGatewayInfo(server)
    return [
      way,
      { good: protocol === 1, text: `server: answers, protocol ${protocol} (this client speaks 1)` },
      { good: true, text: `key: taken; paid by ${billing.plan ?? billing.mode}` },
      {
        good: model !== null,
        text: `models: ${models.length}, by default ${model ?? "none: no model can call tools, or none can be paid"}`
      }
    ]
  } catch (error) {
    return [way, { good: false, text: `server: ${rootOf(error)}` }]
  }
}

const examine = async (given: { readonly url?: string }): Promise<ReadonlyArray<Finding>> => {
  const server = serverOf(given)
  const platform = `${process.platform}-${process.arch}, Node ${process.versions.node}`
  return [
    { good: true, text: `client: ${packageJson.version} (${platform})` },
    { good: true, text: `configuration: ${configFile(configDirectory(process.env))}` },
    { good: true, text: `journal: ${stateDirectory(process.env)}` },
    ...("url" in server ? await ofServer(server) : [server])
  ]
}

export const doctor = Command.make(
  "doctor",
  { url },
  Effect.fnUntraced(function* (flags) {
    const given = Option.match(flags.url, { onNone: () => ({}), onSome: (url) => ({ url }) })
    const findings = yield* Effect.promise(() => examine(given))
    yield* Console.log(
      findings.map(({ good, text }) => printable(`${good ? "ok" : "!!"}  ${text}`)).join("\n")
    )
    process.exitCode = findings.every(({ good }) => good) ? exitCodes.completed : exitCodes.error
  })
).pipe(Command.withDescription("Show what protects this machine, and whether the server can be used"))
