import { createInterface } from "node:readline"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { Connection, RequestRefused, type Target } from "#src/cli/Connection.ts"
import { json, show } from "#src/cli/Output.ts"
import { makeProgressBar } from "#src/cli/ProgressBar.ts"
import { ByteClient, bytesWork } from "./bytes/ByteClient.ts"
import { download } from "./bytes/Download.ts"
import { alreadyThere, codeOf, PartFile, type Sink, StandardOutput } from "./bytes/PartFile.ts"
import { type Address, lookAt, type RemoteBytes } from "./bytes/RemoteBytes.ts"
import { megabytes, shownBytes } from "./bytes/ShownBytes.ts"
import { placeOf } from "./RemotePlace.ts"

const bearer = ({ key }: Target) => ({ authorization: `Bearer ${key}` })

/** undefined: there is nothing */
const kindOf = async (path: string): Promise<"directory" | "other" | undefined> => {
  try {
    return (await stat(path)).isDirectory() ? "directory" : "other"
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/** The file that is written: FILE, the server's name in the directory FILE, or that name here. */
const targetOf = async (given: string | undefined, name: string, force: boolean): Promise<string> => {
  const path = given ?? "."
  const target = (await kindOf(path)) === "directory" ? join(path, name) : path
  const kind = await kindOf(target)
  if (kind === "directory") throw new CommandFailed({ problem: `${target} is a directory` })
  if (kind !== undefined && !force) throw alreadyThere(target)
  return target
}

interface Wanted {
  /** "-": the standard output; undefined: named as on the server */
  readonly file: string | undefined
  readonly force: boolean
  readonly json: boolean
}

const fetched = async (client: ByteClient, remote: RemoteBytes, wanted: Wanted, signal: AbortSignal) => {
  const { file, force } = wanted
  const path = file === "-" ? undefined : await targetOf(file, remote.name, force)
  const sink: Sink = path === undefined ? new StandardOutput() : await PartFile.open(path, remote, force)
  const resumedAt = sink.offset
  const bar = makeProgressBar(path ?? "standard output", megabytes(remote.sizeBytes), "MB")
  try {
    const done = await download(client, remote, sink, {
      onBytes: (offset) => bar.update(megabytes(offset)),
      signal
    })
    return { path: path ?? null, size: done.sizeBytes, sha256: done.sha256 ?? null, resumedAt }
  } finally {
    bar.finish()
    await sink.close()
  }
}

const fetchTo = (client: ByteClient, remote: RemoteBytes, wanted: Wanted) =>
  Effect.gen(function* () {
    const got = yield* bytesWork((signal) => fetched(client, remote, wanted, signal))
    if (got.path === null) return
    yield* show(wanted.json, got, ({ path, resumedAt, size }) =>
      resumedAt > 0
        ? `${path}: ${shownBytes(size)}, of which ${shownBytes(resumedAt)} were there`
        : `${path}: ${shownBytes(size)}`
    )
  })

const fileArgument = Argument.String("file").pipe(
  Argument.withDescription(
    "File to write, or a directory for it; - is the standard output; default: its name, here"
  ),
  Argument.optional
)

const force = Flag.Boolean("force").pipe(
  Flag.withDescription("Replace a file that is there"),
  Flag.withDefault(false)
)

const wantedOf = (input: {
  readonly file: Option.Option<string>
  readonly force: boolean
  readonly json: boolean
}): Wanted => ({ file: Option.getOrUndefined(input.file), force: input.force, json: input.json })

const bytesPath = Effect.fnUntraced(function* (place: string) {
  const found = yield* placeOf(place)
  switch (found.kind) {
    case "root":
      return "/api/download/root"
    case "directory":
      return `/api/download/${found.directory.id}`
    case "file":
      return `/api/files/${found.file.id}?download=1`
    case "version":
      return `/api/files/${found.id}?download=1`
  }
})

/** `signalbox files get`. */
export const getFile = Command.make(
  "get",
  {
    json,
    force,
    place: Argument.String("path").pipe(
      Argument.withDescription("Path or id of a file or directory on the server; / is all of it")
    ),
    file: fileArgument
  },
  Effect.fnUntraced(function* (input) {
    const { target } = yield* Connection
    const found = yield* target
    const path = yield* bytesPath(input.place)
    const client = yield* ByteClient.make
    const address = { url: found.url + path, headers: bearer(found) }
    const remote = yield* bytesWork((signal) => lookAt(client, address, { signal }))
    yield* fetchTo(client, remote, wantedOf(input))
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Download a file, or a directory as an archive (.tgz); goes on where an earlier run ended"
  )
)

/** The first line of a pipe. */
const pipedLine = Effect.promise(async () => {
  for await (const line of createInterface({ input: process.stdin })) return line
  return ""
})

/** Asked for on a terminal, else the first line of the standard input. */
export const askPassword = (message: string) =>
  Effect.suspend(() =>
    process.stdin.isTTY ? Effect.map(Prompt.run(Prompt.Password({ message })), Redacted.value) : pipedLine
  )

const wrongMost = 3

/** Programs write UTF-8 into headers, byte by byte. */
const headerBytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1")

const addressOf = (url: string, password: string | undefined): Address => ({
  url,
  headers: password === undefined ? {} : { "x-share-password": headerBytes(password) }
})

/** Looks at the bytes behind a link; its password is asked for where it has one. */
const lookThrough = Effect.fnUntraced(function* (client: ByteClient, url: string, isGiven: boolean) {
  const question = "Password of the link"
  const isTerminal = process.stdin.isTTY
  let password = isGiven ? yield* askPassword(question) : undefined
  for (let wrong = 0; ;) {
    const address = addressOf(url, password)
    const looked = yield* bytesWork((signal) => lookAt(client, address, { signal })).pipe(
      Effect.catchTag("KeyRefused", () => Effect.succeed(undefined))
    )
    if (looked !== undefined) return looked
    if (password === undefined && !isTerminal)
      return yield* new RequestRefused({ text: "The link has a password: --password reads it" })
    if (password !== undefined) wrong++
    if (wrong === wrongMost || (wrong > 0 && !isTerminal))
      return yield* new RequestRefused({ text: "The link's password is another one" })
    password = yield* askPassword(wrong === 0 ? question : `That is wrong. ${question}`)
  }
})

/** `signalbox get`: needs no server of its own, nor a key. */
export const getLink: Command.Command.Any = Command.make(
  "get",
  {
    json,
    force,
    password: Flag.Boolean("password").pipe(
      Flag.withDescription(
        "Ask for the link's password, or read it from the standard input; asked anyhow on a terminal"
      ),
      Flag.withDefault(false)
    ),
    url: Argument.String("url").pipe(Argument.withDescription("A share link, or another address of a file")),
    file: fileArgument
  },
  Effect.fnUntraced(function* (input) {
    const url = URL.parse(input.url)
    if (url === null || !/^https?:$/.test(url.protocol))
      return yield* new CommandFailed({ problem: `${input.url} is not the address of a link (https://…)` })
    const client = yield* ByteClient.make
    const remote = yield* lookThrough(client, url.href, input.password)
    yield* fetchTo(client, remote, wantedOf(input))
  }, Effect.scoped)
).pipe(Command.withDescription("Download what a share link leads to; goes on where an earlier run ended"))
