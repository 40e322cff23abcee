import { openAsBlob } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { Effect, Option, Predicate } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import {
  Connection,
  KeyRefused,
  RequestRefused,
  rootOf,
  ServerUnreachable,
  type Target
} from "#src/cli/Connection.ts"
import { optional } from "#src/cli/Noun.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"
import { directoryAt, namesOf } from "./RemotePlace.ts"

const fields = {
  files: Argument.String("file").pipe(Argument.withDescription("Files of this machine"), Argument.atLeast(1)),
  device: optional(Flag.String("device"), "Id or name of the machine that gets them; default: the Inbox"),
  directory: optional(
    Flag.String("directory"),
    "Path or id of the directory that gets them, such as docs/reports"
  )
}

type Fields = Readonly<Record<string, string>>

/** The fields of the form that say where it goes. */
const targetOf = Effect.fnUntraced(function* (device: string | undefined, directory: string | undefined) {
  if (device !== undefined && directory !== undefined)
    return yield* new CommandFailed({ problem: "Either --device or --directory, not both" })
  const { ask } = yield* Connection
  if (device !== undefined) {
    const { devices } = yield* ask((client) => client.devices.listDevices())
    const named = devices.filter(({ id, name }) => id === device || name === device)
    const [found, other] = named
    if (found === undefined) return yield* new CommandFailed({ problem: `There is no device ${device}` })
    if (other !== undefined)
      return yield* new CommandFailed({
        problem: `Several devices are called ${device}: ${named.map(({ id }) => id).join(", ")}`
      })
    return { target: "machine", deviceId: found.id } as Fields
  }
  if (directory === undefined) return { target: "inbox" } as Fields
  if (directory.startsWith("dir_")) return { target: "directory", directoryId: directory } as Fields
  const found = yield* directoryAt(namesOf(directory))
  if (found === undefined)
    return yield* new CommandFailed({ problem: `There is no directory ${directory} on the server` })
  return { target: "directory", directoryId: found.id } as Fields
})

interface Sent {
  readonly fileId: string
  readonly versionGroupId: string
  readonly clipboardPath: string | null
}

const wordsOf = (body: unknown, status: number): string =>
  Predicate.hasProperty(body, "error") && Predicate.isString(body.error)
    ? body.error
    : `The server answered ${status}`

/** The file goes from the disk to the socket: it is never whole in memory. */
const sendFile = ({ key, url }: Target, path: string, target: Fields) =>
  Effect.gen(function* () {
    const file = yield* Effect.tryPromise({
      try: async () => {
        if ((await stat(path)).isDirectory()) throw new Error("it is a directory")
        return await openAsBlob(path)
      },
      catch: (error) => new CommandFailed({ problem: `${path} cannot be read: ${rootOf(error)}` })
    })
    const form = new FormData()
    for (const [name, value] of Object.entries(target)) form.append(name, value)
    form.append("file", file, basename(path))
    const headers = { authorization: `Bearer ${key}` }
    const { body, status } = yield* Effect.tryPromise({
      try: async (signal) => {
        const answer = await fetch(`${url}/api/send`, { method: "POST", headers, body: form, signal })
        const text = await answer.text()
        const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true
        return { status: answer.status, body: isJson ? (JSON.parse(text) as unknown) : undefined }
      },
      catch: (error) => new ServerUnreachable({ url, problem: rootOf(error) })
    })
    const text = wordsOf(body, status)
    if (status === 401) return yield* new KeyRefused({ text })
    if (status !== 200) return yield* new RequestRefused({ text: `${path}: ${text}` })
    return { name: basename(path), ...(body as Sent) }
  })

export const send: Command.Command.Any = Command.make(
  "send",
  { json, fields },
  Effect.fnUntraced(function* (input) {
    const { device, directory, files } = input.fields
    const connection = yield* Connection
    const server = yield* connection.target
    const target = yield* targetOf(Option.getOrUndefined(device), Option.getOrUndefined(directory))
    const sent = yield* Effect.forEach(files, (path) => sendFile(server, path, target))
    yield* show(input.json, { files: sent }, (shown) =>
      tableOf(["name", "fileId", ...(target["deviceId"] === undefined ? [] : ["clipboardPath"])], shown.files)
    )
  })
).pipe(Command.withDescription("Send files to the Inbox, to a machine or to a directory on the server"))
