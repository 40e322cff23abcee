import { createReadStream, fstatSync } from "node:fs"
import { hostname } from "node:os"
import { basename } from "node:path"
import { Effect, Option, Runtime, Schema, Stream } from "effect"
import { Argument, CliError, type Command, Flag } from "effect/cli"
import { BodyFormat } from "#schemas/notify/Message.ts"
import { priorities } from "#schemas/notify/SendTerms.ts"
import type { Client } from "#src/cli/Connection.ts"
import { many, optional, verb } from "#src/cli/Noun.ts"

/** A file or standard input could not be read. */
export class InputUnreadable extends Schema.TaggedError<InputUnreadable>()("InputUnreadable", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return this.problem
  }
}

const unreadable = (name: string) => (error: unknown) =>
  new InputUnreadable({ problem: `${name} cannot be read: ${String(error)}` })

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

const upload = (client: Client, path: string) =>
  client.attachments.uploadAttachment({
    query: { filename: basename(path) },
    payload: Stream.fromAsyncIterable(createReadStream(path), unreadable(path))
  })

export const notify: Command.Command.Any = verb(
  "notify",
  "Send a notification with a project key (SIGNALBOX_KEY=prj_…); the standard input is its body",
  {
    message: Argument.String("message").pipe(Argument.withDescription("Text of the notification")),
    app: Flag.String("app").pipe(
      Flag.withDescription("Sender; default: the name of this machine"),
      Flag.withDefault(hostname())
    ),
    title: optional(Flag.String("title"), "Heading in place of the sender"),
    url: optional(Flag.String("url"), "Opened on a click"),
    project: many("project", "Id or slug; say it again for more; default: all that the key covers"),
    priority: optional(Flag.Literals("priority", priorities), "high passes digests and quiet hours"),
    bodyFormat: optional(Flag.Literals("format", BodyFormat.literals), "How the body is meant to be read"),
    file: many("file", "A file to attach; say it again for more")
  },
  (client, { file = [], ...fields }) =>
    Effect.gen(function* () {
      const body = yield* piped
      const attachments = yield* Effect.forEach(file, (path) =>
        Effect.map(upload(client, path), ({ id }) => id)
      )
      return yield* client.sending.sendMessage({
        payload: { ...fields, ...(body !== "" && { body }), ...(attachments.length > 0 && { attachments }) }
      })
    }),
  ({ messages, recipients }) =>
    [
      `Sent to ${recipients} ${recipients === 1 ? "subscriber" : "subscribers"}`,
      ...messages.map(({ id, project, viewUrl }) =>
        [project.slug, id, ...Option.toArray(Option.fromUndefinedOr(viewUrl))].join("  ")
      )
    ].join("\n")
)
