import { fstatSync } from "node:fs"
import { type FileHandle, open, stat } from "node:fs/promises"
import { hostname } from "node:os"
import { basename } from "node:path"
import { Effect, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { BodyFormat, type Sent } from "#schemas/notify/Message.ts"
import { priorities } from "#schemas/notify/SendTerms.ts"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { type Client, Connection } from "#src/cli/Connection.ts"
import { givenOf, many, optional } from "#src/cli/Noun.ts"
import { json, show } from "#src/cli/Output.ts"

const unreadable = (name: string) => (error: unknown) =>
  new CommandFailed({ problem: `${name} cannot be read: ${String(error)}` })

const standardInput = 0

/** The text that a pipe or a file gives; of a terminal or nothing at all, none. */
const piped = Effect.tryPromise({
  try: async () => {
    const kind = fstatSync(standardInput)
    if (!kind.isFIFO() && !kind.isFile() && !kind.isSocket()) return ""
    const pieces: Array<Buffer> = []
    for await (const piece of process.stdin) pieces.push(piece as Buffer)
    return Buffer.concat(pieces).toString()
  },
  catch: unreadable("The standard input")
})

interface Attached {
  readonly path: string
  readonly file: FileHandle
}

/** Opened before anything is sent: a name that is wrong sends nothing. */
const openFile = (path: string) =>
  Effect.acquireRelease(
    Effect.map(
      Effect.tryPromise({
        try: async () => {
          if ((await stat(path)).isDirectory()) throw new Error("it is a directory")
          return await open(path)
        },
        catch: unreadable(path)
      }),
      (file): Attached => ({
        path,
        file
      })
    ),
    ({ file }) => Effect.promise(() => file.close())
  )

const upload = (client: Client, { file, path }: Attached) =>
  client.attachments.uploadAttachment({
    query: { filename: basename(path) },
    payload: Stream.fromAsyncIterable(file.createReadStream({ autoClose: false }), unreadable(path))
  })

const words = ({ messages, recipients }: Sent): string =>
  [
    `Sent to ${recipients} ${recipients === 1 ? "subscriber" : "subscribers"}`,
    ...messages.map(({ id, project, viewUrl }) =>
      [project.slug, id, ...(viewUrl === undefined ? [] : [viewUrl])].join("  ")
    )
  ].join("\n")

const fields = {
  message: Argument.String("message").pipe(Argument.withDescription("Text of the notification")),
  app: Flag.String("app").pipe(
    Flag.withDescription("Sender; default: the name of this machine"),
    Flag.withDefault(hostname())
  ),
  title: optional(Flag.String("title"), "Heading in place of the sender"),
  url: optional(Flag.String("url"), "Opened on a click"),
  project: many("project", "Id or slug; say it again for more; default: all that the key covers"),
  priority: optional(
    Flag.Literals("priority", priorities),
    "How soon a browser wakes for it, and a mark on its page; default: normal"
  ),
  bodyFormat: optional(Flag.Literals("format", BodyFormat.literals), "How the body is meant to be read"),
  file: many("file", "A file to attach; say it again for more")
}

export const notify: Command.Command.Any = Command.make(
  "notify",
  { json, fields },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const { file: paths = [], ...given } = givenOf(input.fields)
    const files = yield* Effect.forEach(paths, openFile)
    const body = yield* piped
    const sent = yield* ask((client) =>
      Effect.gen(function* () {
        const uploads = yield* Effect.forEach(files, (file) => upload(client, file))
        const attachments = uploads.map(({ id }) => id)
        return yield* client.sending.sendMessage({
          payload: { ...given, ...(body !== "" && { body }), ...(attachments.length > 0 && { attachments }) }
        })
      })
    )
    yield* show(input.json, sent, words)
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Send a notification with a project key (SIGNALBOX_KEY=prj_…); the standard input is its body"
  )
)
