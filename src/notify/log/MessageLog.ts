import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { type BadRequest, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import type { Delivery, Message, MessageDetail } from "#schemas/notify/Message.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Attachments, type MessageFile } from "../attachments/Attachments.ts"
import { Links } from "../Links.ts"

/** The caller of a read. A project key sees what it sent itself, without texts and names. */
export interface Reader {
  readonly owner: string
  readonly keyId: string | undefined
  readonly serverUrl: string
}

interface Paged {
  /** `next` of the page before */
  readonly before?: string
  readonly limit: number
}

interface Filter extends Paged {
  /** id or slug */
  readonly project?: string
  readonly app?: string
  readonly status?: Message["status"]
}

interface List<Name extends string, A> {
  readonly page: { readonly [Key in Name]: ReadonlyArray<A> } & { readonly next: string | null }
}

/** The messages that were accepted, and what became of them. */
export class MessageLog extends Context.Service<
  MessageLog,
  {
    readonly list: (
      reader: Reader,
      filter: Filter
    ) => Effect.Effect<List<"messages", Message>["page"], BadRequest | SqlError>
    readonly read: (reader: Reader, id: string) => Effect.Effect<MessageDetail, NotFound | SqlError>
    readonly deliveries: (
      reader: Reader,
      id: string,
      page: Paged
    ) => Effect.Effect<List<"deliveries", Delivery>["page"], NotFound | SqlError>
    /** those of the owner that were given up, newest first */
    readonly dead: (
      reader: Reader,
      page: Paged
    ) => Effect.Effect<List<"deliveries", Delivery>["page"], BadRequest | SqlError>
    /** Deliveries that wait are not sent any more: a worker finds no message. */
    readonly remove: (reader: Reader, id: string) => Effect.Effect<void, NotFound | SqlError>
  }
>()("signalbox/notify/MessageLog") {
  static readonly layer = Layer.effect(
    MessageLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { ofMessage: filesOf } = yield* Attachments
      const parts: Parts = { ...statements(sql), sql, filesOf, links: yield* Links }
      return MessageLog.of({ ...ofMessages(parts), ...ofDeliveries(parts) })
    })
  )
}

interface MessageRow {
  readonly seq: string
  readonly id: string
  readonly project: Message["project"]
  readonly app: string
  readonly message: string
  readonly title: string | null
  readonly url: string | null
  readonly priority: Message["priority"]
  readonly body_format: Message["bodyFormat"]
  readonly body_bytes: number
  readonly attachments: number
  readonly recipients: number
  readonly queued_for_digest: number
  readonly is_delivering: boolean
  readonly created_at: Date
}

interface DeliveryRow {
  readonly cursor: string
  readonly id: string
  readonly message_id: string
  readonly subscriber_id: string
  readonly subscriber_name: string | null
  readonly channel_id: string
  readonly kind: Delivery["kind"]
  readonly status: Delivery["status"]
  readonly digest_id: string | null
  readonly attempts: number
  readonly next_attempt_at: Date | null
  readonly last_error: string | null
  readonly repeated: boolean
  readonly ended_at: Date | null
}

const shownDelivery =
  ({ keyId }: Reader) =>
  (row: DeliveryRow): Delivery => ({
    id: row.id,
    message: row.message_id,
    subscriber: {
      id: row.subscriber_id,
      ...(keyId === undefined && { name: row.subscriber_name })
    },
    channel: row.channel_id,
    kind: row.kind,
    status: row.status,
    digest: row.digest_id,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at?.toISOString() ?? null,
    lastError: row.last_error,
    repeated: row.repeated,
    endedAt: row.ended_at?.toISOString() ?? null
  })

const decimal = /^[1-9][0-9]{0,17}$/

/** A list whose pages begin below a number. */
const numberOf = (before: string | undefined): Effect.Effect<string | null, BadRequest> =>
  before === undefined || decimal.test(before)
    ? Effect.succeed(before ?? null)
    : Effect.fail(invalidField("before", "expected `next` of another page"))

/** One row more than a page was read: the last that is shown is where the next page begins. */
const pageOf = <Row, A>(
  rows: ReadonlyArray<Row>,
  limit: number,
  cursorOf: (row: Row) => string,
  shown: (row: Row) => A
) => {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { items: page.map(shown), next: rows.length > limit && last !== undefined ? cursorOf(last) : null }
}

/** The parts that the statements share. */
const statements = (sql: SqlClient) => {
  // Of those that were held, rows say that they are, or in which digest they wait.
  const isWaiting = sql`(EXISTS (SELECT FROM jobs j WHERE j.queue = 'deliveries' AND j.payload ->> 'message' = m.id)
    OR (m.queued_for_digest > 0 AND EXISTS (SELECT FROM deliveries h WHERE h.message_id = m.id AND h.dropped_at IS NULL
      AND (h.held_until IS NOT NULL OR EXISTS (SELECT FROM jobs j WHERE j.queue = 'deliveries'
        AND j.payload ->> 'message' = h.digest_id AND j.lane = h.channel_id)))))`
  const ownedBy = ({ keyId, owner }: Reader): Fragment =>
    keyId === undefined ? sql`m.user_id = ${owner}` : sql`m.user_id = ${owner} AND m.key_id = ${keyId}`
  const messages = (where: Fragment, limit: number) => sql<MessageRow>`
    SELECT m.seq::text, m.id, json_build_object('id', p.id, 'slug', p.slug, 'name', p.name) AS project, m.app, m.message,
      m.title, m.url, m.priority, m.body_format, m.body_bytes, m.attachments,
      m.recipients, m.queued_for_digest, m.created_at, ${isWaiting} AS is_delivering
    FROM messages m JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
    WHERE ${where} ORDER BY m.seq DESC LIMIT ${limit}`
  /** `rows`: deliveries as d, with the cursor of their list and their rows of jobs as j and e. */
  const deliveriesOf = (cursor: Fragment, rows: Fragment) => sql<DeliveryRow>`
    SELECT ${cursor} AS cursor, d.id, d.message_id, d.subscriber_id, s.name AS subscriber_name, d.channel_id, d.kind, d.digest_id,
      CASE WHEN d.dropped_at IS NOT NULL THEN 'dropped'
        WHEN d.held_until IS NOT NULL OR (d.digest_id IS NOT NULL AND j.id IS NOT NULL) THEN 'held'
        WHEN j.id IS NOT NULL THEN 'waiting' WHEN e.outcome = 'dead' THEN 'dead' ELSE 'delivered' END AS status,
      coalesce(j.attempts, e.attempts, 0) AS attempts,
      CASE WHEN d.held_until IS NOT NULL THEN d.held_until WHEN j.id IS NULL OR l.holder IS NOT NULL THEN NULL
        WHEN EXISTS (SELECT FROM jobs o WHERE o.queue = j.queue AND o.lane = j.lane AND o.seq < j.seq) THEN NULL
        ELSE l.due_at END AS next_attempt_at,
      coalesce(j.last_error, e.last_error) AS last_error, coalesce(j.repeated, e.repeated, false) AS repeated,
      coalesce(d.dropped_at, e.ended_at) AS ended_at
    FROM ${rows} LEFT JOIN subscribers s ON s.id = d.subscriber_id
      LEFT JOIN job_lanes l ON l.queue = j.queue AND l.lane = j.lane`
  /** `rows` of a message, with the outcome of each, which jobs know: its own one, or that of the digest on its channel. */
  const ofMessage = (rows: Fragment): Fragment => sql`(SELECT r.*,
      CASE WHEN r.digest_id IS NULL THEN r.id ELSE delivery_id(r.digest_id, r.channel_id) END AS job_id FROM (${rows}) AS r) AS d
    LEFT JOIN jobs j ON j.queue = 'deliveries' AND j.id = d.job_id
    LEFT JOIN jobs_ended e ON e.queue = 'deliveries' AND e.id = d.job_id AND j.id IS NULL`
  const find = Effect.fnUntraced(function* (reader: Reader, id: string) {
    const [row] = yield* messages(sql`${ownedBy(reader)} AND m.id = ${id}`, 1)
    return row ?? (yield* notFound("Message"))
  })
  return { isWaiting, ownedBy, messages, deliveriesOf, ofMessage, find }
}

interface Parts extends ReturnType<typeof statements> {
  readonly sql: SqlClient
  readonly links: Links["Service"]
  readonly filesOf: Attachments["Service"]["ofMessage"]
}

const shownMessage =
  (links: Links["Service"], { keyId, serverUrl }: Reader) =>
  (row: MessageRow): Message => ({
    id: row.id,
    project: row.project,
    app: row.app,
    ...(keyId === undefined && { message: row.message, title: row.title, url: row.url }),
    priority: row.priority,
    bodyFormat: row.body_format,
    bodyBytes: row.body_bytes,
    attachments: row.attachments,
    recipients: row.recipients,
    queuedForDigest: row.queued_for_digest,
    status: row.is_delivering ? "delivering" : "done",
    ...((row.body_bytes > 0 || row.attachments > 0) && {
      viewUrl: `${serverUrl}/n/m/${links.message(row.id).token}`
    }),
    createdAt: row.created_at.toISOString()
  })

const shownFile =
  ({ keyId }: Reader) =>
  ({
    contentType,
    expiresAt,
    filename,
    id,
    isExpired,
    sha256,
    size
  }: MessageFile): MessageDetail["attachments"][number] => ({
    id,
    ...(keyId === undefined && { filename }),
    contentType,
    size,
    sha256,
    expiresAt: expiresAt.toISOString(),
    expired: isExpired
  })

const ofMessages = ({
  deliveriesOf,
  filesOf,
  find,
  isWaiting,
  links,
  messages,
  ofMessage,
  ownedBy,
  sql
}: Parts) => {
  /** An unknown project has no messages. */
  const isOf = ({ owner }: Reader, project: string) => sql`m.project_id = (SELECT id FROM projects
    WHERE user_id = ${owner} AND deleted_at IS NULL AND (id = ${project} OR slug = ${project}))`
  return {
    list: Effect.fnUntraced(function* (reader: Reader, { app, before, limit, project, status }: Filter) {
      const from = yield* numberOf(before)
      const rows = yield* messages(
        sql.and([
          ownedBy(reader),
          ...(from === null ? [] : [sql`m.seq < ${from}::bigint`]),
          ...(project === undefined ? [] : [isOf(reader, project)]),
          ...(app === undefined ? [] : [sql`m.app = ${app}`]),
          ...(status === undefined ? [] : [status === "delivering" ? isWaiting : sql`NOT ${isWaiting}`])
        ]),
        limit + 1
      )
      const { items, next } = pageOf(rows, limit, ({ seq }) => seq, shownMessage(links, reader))
      return { messages: items, next }
    }),
    read: Effect.fnUntraced(function* (reader: Reader, id: string) {
      const row = yield* find(reader, id)
      const counted = yield* sql<{ status: Delivery["status"]; count: number }>`
        SELECT status, count(*)::int AS count FROM (${deliveriesOf(
          sql`''`,
          ofMessage(sql`SELECT * FROM deliveries WHERE message_id = ${id}`)
        )}) AS outcomes GROUP BY status`
      const counts = { waiting: 0, held: 0, delivered: 0, dead: 0, dropped: 0 }
      for (const { count, status } of counted) counts[status] = count
      const attachments = (yield* filesOf(id)).map(shownFile(reader))
      return { ...shownMessage(links, reader)(row), attachments, deliveries: counts }
    }),
    remove: (reader: Reader, id: string) =>
      sql.withTransaction(
        Effect.gen(function* () {
          const deleted =
            yield* sql`DELETE FROM messages m WHERE ${ownedBy(reader)} AND m.id = ${id} RETURNING 1`
          if (deleted.length === 0) return yield* notFound("Message")
          yield* sql`DELETE FROM deliveries WHERE message_id = ${id}`
        })
      )
  }
}

const ofDeliveries = ({ deliveriesOf, find, ofMessage, sql }: Parts) => ({
  deliveries: Effect.fnUntraced(function* (reader: Reader, id: string, { before, limit }: Paged) {
    yield* find(reader, id)
    const rows = yield* sql<DeliveryRow>`${deliveriesOf(
      sql`d.channel_id`,
      ofMessage(sql`SELECT * FROM deliveries WHERE message_id = ${id} AND channel_id < ${before ?? "~"}
        ORDER BY channel_id DESC LIMIT ${limit + 1}`)
    )} ORDER BY d.channel_id DESC`
    const { items, next } = pageOf(rows, limit, ({ cursor }) => cursor, shownDelivery(reader))
    return { deliveries: items, next }
  }),
  dead: Effect.fnUntraced(function* (reader: Reader, { before, limit }: Paged) {
    const from = yield* numberOf(before)
    const rows = yield* sql<DeliveryRow>`${deliveriesOf(
      sql`e.seq::text`,
      sql`jobs_ended e JOIN deliveries d ON d.message_id = e.payload ->> 'message' AND d.channel_id = e.lane
        LEFT JOIN jobs j ON j.queue = 'deliveries' AND j.id = d.id`
    )} WHERE e.queue = 'deliveries' AND e.outcome = 'dead' AND e.payload ->> 'owner' = ${reader.owner}
      AND (${from}::bigint IS NULL OR e.seq < ${from}::bigint) ORDER BY e.seq DESC LIMIT ${limit + 1}`
    const { items, next } = pageOf(rows, limit, ({ cursor }) => cursor, shownDelivery(reader))
    return { deliveries: items, next }
  })
})
