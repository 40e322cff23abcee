import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { linkListLimits } from "#schemas/files/ShareLink.ts"
import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { Connection } from "#src/cli/Connection.ts"
import { givenOf, optional, verb } from "#src/cli/Noun.ts"
import { json, show, tableOf } from "#src/cli/Output.ts"
import { askPassword } from "./GetCommands.ts"
import { placeOf } from "./RemotePlace.ts"

const place = Argument.String("path").pipe(
  Argument.withDescription("Path or id of a file or directory on the server")
)

const minutesOf = { m: 1, h: 60, d: 1_440, w: 10_080 } as const

/** `90m`, `8h`, `7d`, `2w`, or a number of minutes. */
const minutesIn = (text: string): number | undefined => {
  const [, count, unit = "m"] = /^(\d+(?:\.\d+)?)([mhdw])?$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * minutesOf[unit as keyof typeof minutesOf]
}

/** The file or directory that links of a path lead to, as requests name it. */
const sharedAt = Effect.fnUntraced(function* (text: string) {
  const { ask } = yield* Connection
  const found = yield* placeOf(text)
  switch (found.kind) {
    case "root":
      return yield* new CommandFailed({ problem: "The root cannot be shared: share a directory in it" })
    case "directory":
      return { directoryId: found.directory.id }
    case "file":
      return { fileId: found.file.id }
    case "version": {
      const { fileId } = yield* ask((client) => client.storedFiles.listVersions({ params: { id: found.id } }))
      return { fileId }
    }
  }
})

const fields = {
  once: Flag.Boolean("once").pipe(Flag.withDescription("It works for one download"), Flag.withDefault(false)),
  max: optional(Flag.Int("max"), "It works for so many downloads"),
  expires: optional(Flag.String("expires"), "It works for so long: 90m, 8h, 7d, 2w; default: without an end"),
  password: Flag.Boolean("password").pipe(
    Flag.withDescription("Ask for a password, or read it from the standard input"),
    Flag.withDefault(false)
  ),
  pinned: Flag.Boolean("pinned").pipe(
    Flag.withDescription("It stays with this version of the file"),
    Flag.withDefault(false)
  ),
  label: optional(Flag.String("label"), "Shown to you alone")
}

const list = Command.make(
  "list",
  {
    json,
    place: place.pipe(
      Argument.withDescription("Those to this file or directory alone, by its path or id"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const of = Option.isNone(input.place) ? {} : yield* sharedAt(input.place.value)
    const answer = yield* ask((client) =>
      client.shareLinks.listShareLinks({ query: { ...of, limit: linkListLimits.limitMax } })
    )
    yield* show(input.json, answer, ({ links }) =>
      tableOf(["url", "name", "uses", "maxRequests", "expiresAt", "label", "createdAt"], links)
    )
  })
).pipe(Command.withDescription("List share links, the newest first"))

const revoke = verb(
  "revoke",
  "Revoke a share link: it works no more, also where it is being downloaded",
  { link: Argument.String("link").pipe(Argument.withDescription("The link's address, or its token")) },
  (client, { link }) =>
    client.shareLinks.deleteShareLink({
      params: {
        token:
          link
            .replace(/[?#].*$/, "")
            .split("/")
            .at(-1) ?? link
      }
    }),
  () => "Revoked"
)

/** `signalbox share`: prints the link alone, for other programs. */
export const share: Command.Command.Any = Command.make(
  "share",
  { json, place, fields },
  Effect.fnUntraced(function* (input) {
    const { ask } = yield* Connection
    const { expires, label, max, once, password, pinned } = givenOf(input.fields)
    const expiresInMinutes = expires === undefined ? undefined : minutesIn(expires)
    if (expires !== undefined && expiresInMinutes === undefined)
      return yield* new CommandFailed({ problem: "--expires: expected a time such as 90m, 8h, 7d or 2w" })
    const shared = yield* sharedAt(input.place)
    const secret = password ? yield* askPassword("Password of the link") : undefined
    const link = yield* ask((client) =>
      client.shareLinks.createShareLink({
        payload: {
          ...shared,
          ...(once && { singleUse: true }),
          ...(max !== undefined && { maxRequests: max }),
          ...(expiresInMinutes !== undefined && { expiresInMinutes }),
          ...(secret !== undefined && { password: secret }),
          ...(pinned && { pinned: true }),
          ...(label !== undefined && { label })
        }
      })
    )
    yield* Console.log(input.json ? JSON.stringify(link, null, 2) : link.url)
  })
).pipe(
  Command.withDescription("Share a file or a directory by a link, which is printed alone"),
  Command.withSubcommands([list, revoke])
)
