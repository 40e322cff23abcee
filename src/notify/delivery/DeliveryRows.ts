import { Effect, Exit, Request, RequestResolver } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { ChannelOf, DigestItem, Notice } from "#streams/notify/channels/Channel.ts"
import { digestNotice, toldItems } from "#streams/notify/digests/DigestNotice.ts"
import { Links } from "../Links.ts"

/** The parts of a notice that the deliveries of a message, or of a digest, have in common. */
export type MessageNotice = DigestItem & Pick<Notice, "createdAtMillis" | "digest">

/** A channel that takes messages, its target as `streams/notify/channels` made it when the channel was added. */
export type DeliveryChannel = ChannelOf & {
  /** deliveries before this one that were given up, without one between them that arrived */
  readonly deadInARow: number
}

/** A delivery whose turn it is. */
export interface DeliveryRow {
  readonly message: MessageNotice
  /** undefined: it takes nothing any more, or it, its subscriber or the project is gone */
  readonly channel: DeliveryChannel | undefined
  /** by the clock of Postgres, which also says when a delivery was accepted */
  readonly nowMillis: number
}

/** undefined: the message was deleted, and its deliveries with it; or all messages of the digest were. */
type Found = DeliveryRow | undefined

interface ReadDelivery extends Request.Request<Found, SqlError> {
  readonly _tag: "ReadDelivery"
  readonly message: string
  readonly channel: string
}
const ReadDelivery = Request.tagged<ReadDelivery>("ReadDelivery")

interface Row {
  readonly n: number
  readonly is_there: boolean
  readonly channel: DeliveryChannel | null
  readonly now_millis: number
  readonly message: Texts | null
}

interface DigestRow extends Omit<Row, "message"> {
  readonly made_millis: number | null
  /** messages that are wanted still */
  readonly count: number
  readonly items: ReadonlyArray<Texts & { readonly id: string }>
}

interface Texts extends Pick<Notice, "app" | "createdAtMillis" | "message" | "priority"> {
  readonly project: { readonly slug: string | null; readonly name: string | null }
  readonly title: string | null
  readonly url: string | null
  readonly bodyBytes: number
  readonly attachments: number
}

/** Texts of messages whose deliveries are being made. */
class MessageMemory {
  /** the one that was used last at the end */
  private readonly messages = new Map<string, MessageNotice>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  get(id: string): MessageNotice | undefined {
    const message = this.messages.get(id)
    if (message !== undefined) this.keep(message)
    return message
  }

  keep(message: MessageNotice): void {
    this.messages.delete(message.messageId)
    this.messages.set(message.messageId, message)
    for (const oldest of this.messages.keys()) {
      if (this.messages.size <= this.most) break
      this.messages.delete(oldest)
    }
  }
}

const noticeOf = (messageId: string, texts: Texts, pageUrl: string): MessageNotice => {
  const { app, attachments, bodyBytes, createdAtMillis, message, priority, project, title, url } = texts
  return {
    messageId,
    project: { slug: project.slug ?? "", name: project.name ?? "" },
    app,
    message,
    ...(title === null ? {} : { title }),
    ...(url === null ? {} : { url }),
    pageUrl,
    hasView: bodyBytes > 0 || attachments > 0,
    priority,
    hasPaperclip: attachments > 0,
    createdAtMillis
  }
}

/** A digest has a delivery as a message has: the id says which it is. */
export const isDigest = (id: string): boolean => id.startsWith("dig_")

type PageOf = (kind: "digest" | "message", id: string) => string

/** Reads deliveries of messages by one statement; texts that are in memory are not asked for. */
const readingMessages =
  (sql: SqlClient, memory: MessageMemory, pageOf: PageOf) =>
  (asked: ReadonlyArray<ReadDelivery>): Effect.Effect<ReadonlyArray<Found>, SqlError> => {
    const known = new Map<string, MessageNotice | undefined>()
    const marks = asked.map(({ message }) => {
      if (known.has(message)) return ""
      known.set(message, memory.get(message))
      return known.get(message) === undefined ? "t" : ""
    })
    return Effect.map(
      sql<Row>`SELECT * FROM deliveries_read(${asked.map(({ message }) => message)}::text[],
        ${asked.map(({ channel }) => channel)}::text[], ${marks}::text[])`,
      (rows) => {
        for (const { is_there: isThere, message, n } of rows) {
          const id = asked[n - 1]?.message ?? ""
          if (!isThere || message === null) continue
          const notice = noticeOf(id, message, pageOf("message", id))
          memory.keep(notice)
          known.set(id, notice)
        }
        const found = new Map<number, Found>()
        for (const { channel, is_there: isThere, n, now_millis: nowMillis } of rows) {
          const message = known.get(asked[n - 1]?.message ?? "")
          if (isThere && message !== undefined)
            found.set(n, { message, channel: channel ?? undefined, nowMillis })
        }
        return asked.map((_, index) => found.get(index + 1))
      }
    )
  }

/** A digest as it is told; one of whose messages one is left is that message. */
const noticeOfDigest = (id: string, { count, items, made_millis: madeMillis }: DigestRow, pageOf: PageOf) => {
  const notices = items.map((item) => noticeOf(item.id, item, pageOf("message", item.id)))
  return count === 1
    ? notices[0]
    : digestNotice({
        id,
        pageUrl: pageOf("digest", id),
        count,
        items: notices,
        createdAtMillis: madeMillis ?? 0
      })
}

/** Reads deliveries of digests by one statement. */
const readingDigests =
  (sql: SqlClient, pageOf: PageOf) =>
  (asked: ReadonlyArray<ReadDelivery>): Effect.Effect<ReadonlyArray<Found>, SqlError> =>
    asked.length === 0
      ? Effect.succeed([])
      : Effect.map(
          sql<DigestRow>`SELECT * FROM digests_read(${asked.map(({ message }) => message)}::text[],
            ${asked.map(({ channel }) => channel)}::text[], ${toldItems})`,
          (rows) => {
            const found = new Map<number, Found>()
            for (const row of rows) {
              const { channel, is_there: isThere, n, now_millis: nowMillis } = row
              const message = noticeOfDigest(asked[n - 1]?.message ?? "", row, pageOf)
              if (!isThere || (channel !== null && row.count === 0) || message === undefined) continue
              found.set(n, { message, channel: channel ?? undefined, nowMillis })
            }
            return asked.map((_, index) => found.get(index + 1))
          }
        )

/**
 * Reads deliveries whose turn it is: those that are asked for in one turn of the event loop together, and the texts of a message
 * once while its deliveries are made.
 */
export const make = Effect.fnUntraced(function* (serverUrl: string) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const links = yield* Links
  const pageOf: PageOf = (kind, id) =>
    `${serverUrl}/n/${kind === "digest" ? "d" : "m"}/${links[kind](id).token}`
  const messages = readingMessages(sql, new MessageMemory(limits.messagesInMemory), pageOf)
  const digests = readingDigests(sql, pageOf)

  type Entries = ReadonlyArray<Request.Entry<ReadDelivery>>
  const complete = (entries: Entries, read: typeof messages) =>
    entries.length === 0
      ? Effect.void
      : Effect.map(Effect.exit(read(entries.map(({ request }) => request))), (exit) =>
          entries.forEach((entry, index) => entry.completeUnsafe(Exit.map(exit, (found) => found[index])))
        )
  const resolver = RequestResolver.make<ReadDelivery>((entries) => {
    const isOfDigest = ({ request }: Request.Entry<ReadDelivery>) => isDigest(request.message)
    return Effect.all(
      [
        complete(
          entries.filter((entry) => !isOfDigest(entry)),
          messages
        ),
        complete(entries.filter(isOfDigest), digests)
      ],
      { concurrency: 2, discard: true }
    )
  })
  return (message: string, channel: string): Effect.Effect<Found, SqlError> =>
    Effect.request(ReadDelivery({ message, channel }), resolver)
})
