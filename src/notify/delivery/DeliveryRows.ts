import { Effect, Exit, Request, RequestResolver } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Notice, PushTarget, WebhookTarget } from "#streams/notify/channels/Channel.ts"
import { Links } from "../Links.ts"

/** The parts of a notice that a message's deliveries have in common. */
export type MessageNotice = Pick<
  Notice,
  | "app"
  | "createdAtMillis"
  | "hasPaperclip"
  | "hasView"
  | "message"
  | "messageId"
  | "pageUrl"
  | "priority"
  | "project"
  | "title"
  | "url"
>

/** A channel that takes messages, its target as `streams/notify/channels` made it when the channel was added. */
export type DeliveryChannel = {
  /** deliveries before this one that were given up, without one between them that arrived */
  readonly deadInARow: number
} & (
  | { readonly kind: "push"; readonly target: PushTarget }
  | { readonly kind: "webhook"; readonly target: WebhookTarget }
)

/** A delivery whose turn it is. */
export interface DeliveryRow {
  readonly message: MessageNotice
  /** undefined: it takes nothing any more, or it, its subscriber or the project is gone */
  readonly channel: DeliveryChannel | undefined
  /** by the clock of Postgres, which also says when a delivery was accepted */
  readonly nowMillis: number
}

/** undefined: the message was deleted, and its deliveries with it. */
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

/**
 * Reads deliveries whose turn it is: those that are asked for in one turn of the event loop by one statement, and the texts
 * of a message once while its deliveries are made.
 */
export const make = Effect.fnUntraced(function* (serverUrl: string) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const links = yield* Links
  const memory = new MessageMemory(limits.messagesInMemory)

  const readAll = (asked: ReadonlyArray<ReadDelivery>): Effect.Effect<ReadonlyArray<Found>, SqlError> => {
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
          const notice = noticeOf(id, message, `${serverUrl}/n/m/${links.message(id).token}`)
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

  const resolver = RequestResolver.make<ReadDelivery>((entries) =>
    Effect.map(Effect.exit(readAll(entries.map(({ request }) => request))), (exit) =>
      entries.forEach((entry, index) => entry.completeUnsafe(Exit.map(exit, (found) => found[index])))
    )
  )
  return (message: string, channel: string): Effect.Effect<Found, SqlError> =>
    Effect.request(ReadDelivery({ message, channel }), resolver)
})
