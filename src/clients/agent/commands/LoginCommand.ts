import { createInterface } from "node:readline"
import { Console, Effect, Redacted } from "effect"
import { Command, Prompt } from "effect/cli"
import { configFile, readConfig, writeConfig } from "../config/ConfigFile.ts"
import { configDirectory } from "../config/Directories.ts"
import { isExposed, originOf } from "../config/FindServer.ts"
import { UsageProblem } from "../config/UsageProblem.ts"
import { fetchGatewayInfo, RequestRefused } from "../connection/ServerRest.ts"
import { ConnectionClosed } from "../connection/ConnectionClosed.ts"
import { printable } from "../boundary/Printable.ts"

interface Given {
  readonly url: string
  readonly key: string
}

/** The address and the key, each on a line: for programs, and keys never stand in a command line. */
const readLines = async (): Promise<Given> => {
  const lines: Array<string> = []
  for await (const line of createInterface({ input: process.stdin })) lines.push(line.trim())
  return { url: lines[0] ?? "", key: lines[1] ?? "" }
}

const ask = Effect.gen(function* () {
  const url = yield* Prompt.run(Prompt.String({ message: "Address of the server (https://…)" }))
  const key = yield* Prompt.run(Prompt.Password({ message: "Key (it is not shown)" }))
  return { url, key: Redacted.value(key) }
})

/** Tries the key before it is written down. Throws `UsageProblem` or `ConnectionClosed`. */
const signIn = async (given: Given): Promise<string> => {
  const url = originOf(given.url)
  if (url === undefined) throw new UsageProblem(`${given.url} is not the address of a server (https://…)`)
  if (given.key === "") throw new UsageProblem("No key was given")
  const info = await fetchGatewayInfo({ url, key: given.key }).catch((error: unknown) => {
    if (!(error instanceof RequestRefused)) throw error
    const problem = `${url} does not take this key: ${error.message}. Nothing was written.`
    throw new ConnectionClosed("key_refused", problem)
  })
  const directory = configDirectory(process.env)
  const before = readConfig(directory)
  writeConfig(directory, { ...before, url, key: given.key })
  const lines = [
    `Signed in at ${url}; default model ${info.default_model ?? "none"}.`,
    `The key is in ${configFile(directory)}, readable by you alone.`
  ]
  if (isExposed(url)) lines.push("This address is not encrypted: the key can be read on its way.")
  return printable(lines.join("\n"))
}

export const login = Command.make(
  "login",
  {},
  Effect.fnUntraced(function* () {
    const given = process.stdin.isTTY ? yield* ask : yield* Effect.promise(readLines)
    const said = yield* Effect.tryPromise({ try: () => signIn(given), catch: (error) => error })
    yield* Console.log(said)
  })
).pipe(
  Command.withDescription(
    "Ask for the server's address and a key, try them, and keep them for this user. Piped in: two lines, address and key"
  )
)
