import { Context, Effect, Layer, Metric, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import {
  BadRequest,
  type Conflict,
  invalidField,
  NotFound,
  type RateLimited,
  ServiceUnavailable
} from "#schemas/core/Problem.ts"
import { Sent } from "#schemas/notify/Message.ts"
import type { ProjectRow } from "#schemas/notify/Project.ts"
import type { ProjectKeyRow } from "#schemas/notify/ProjectKey.ts"
import type { SendFields } from "#streams/notify/SendFields.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Idempotency, isIdempotencyKey } from "#src/infra/postgres/Idempotency.ts"
import { type AttachmentRow, Attachments } from "../attachments/Attachments.ts"
import { attachmentsMax } from "#schemas/notify/SendTerms.ts"
import { deliveries } from "../delivery/Deliveries.ts"
import { Holds } from "../digests/Holds.ts"
import { type LinkToken, Links } from "../Links.ts"
import { ProjectKeys } from "../projects/ProjectKeys.ts"
import { ProjectDirectory } from "../projects/Projects.ts"
import * as WaitingDeliveries from "./WaitingDeliveries.ts"

/** A send whose fields were read, by a project key. */
export interface Send {
  readonly key: ProjectKeyRow
  readonly fields: SendFields
  /** uploads that came with the send, unused; they go behind those of `fields` */
  readonly files?: ReadonlyArray<Pick<AttachmentRow, "id" | "sha256">>
  /** as it came */
  readonly idempotencyKey: string | undefined
  /** where links lead to */
  readonly serverUrl: string
}

type SendFault = BadRequest | NotFound | Conflict | RateLimited | ServiceUnavailable

/** Accepts messages: once this answers, each is delivered or given up, whatever dies. Source: contract/notify#sending. */
export class Sending extends Context.Service<
  Sending,
  {
    /** `isReplay`: it was accepted before, under the same Idempotency-Key */
    readonly send: (
      send: Send
    ) => Effect.Effect<{ readonly sent: Sent; readonly isReplay: boolean }, SendFault>
    /** The owner's own message to the subscribers of a project. */
    readonly test: (
      project: ProjectRow,
      serverUrl: string
    ) => Effect.Effect<Sent, BadRequest | RateLimited | ServiceUnavailable>
  }
>()("signalbox/notify/Sending") {
  static readonly layer = Layer.effect(
    Sending,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const idempotency = yield* Idempotency
      const covered = yield* makeCovered
      const accept = yield* makeAccept
      const waiting = yield* WaitingDeliveries.make
      const inTurn = makeTurns()
      const inTime = <A, E>(body: Effect.Effect<A, E>) =>
        body.pipe(
          storeAwayUntimed,
          Effect.timeoutOrElse({
            duration: limits.sendMillis,
            orElse: () => Effect.fail(ServiceUnavailable.of("The database is slow; nothing was sent"))
          })
        )
      const count = (owner: string, { deliveries: added, sent }: Accepted) => {
        waiting.add(owner, added)
        return Metric.update(messagesAccepted, sent.messages.length)
      }
      const test = Effect.fn("Sending.test")(function* (project: ProjectRow, serverUrl: string) {
        const owner = project.user_id
        yield* waiting.refuseOver(owner)
        const sender = { owner, keyId: null }
        const accepted = yield* accept({ fields: testOf(project), sender, projects: [project], serverUrl })
        yield* count(owner, accepted)
        return accepted.sent
      })
      const send = Effect.fn("Sending.send")(function* (asked: Send) {
        const { files = [], idempotencyKey, key, serverUrl } = asked
        if (idempotencyKey !== undefined && !isIdempotencyKey(idempotencyKey))
          return yield* invalidField("Idempotency-Key", "expected 1 to 255 characters of ASCII")
        const attachments = [...asked.fields.attachments, ...files.map(({ id }) => id)]
        if (attachments.length > attachmentsMax)
          return yield* invalidField("attachments", `at most ${attachmentsMax}`)
        const fields = { ...asked.fields, attachments }
        const sender = { owner: key.user_id, keyId: key.id }
        // A repetition has its answer, whatever has become of projects and limits. They are looked up before the
        // transaction: within it a second connection may not come.
        const projects = yield* Effect.exit(covered(key, fields.project))
        const room = yield* Effect.exit(waiting.refuseOver(sender.owner))
        let accepted: Accepted | undefined
        const fresh = Effect.gen(function* () {
          const found = yield* projects
          yield* room
          accepted = yield* accept({ fields, sender, projects: found, serverUrl })
          return accepted.sent
        })
        const once = (given: string) => ({ ...onceOf(asked, given), waitMillis: limits.sendMillis })
        const sent = yield* idempotencyKey === undefined
          ? fresh
          : inTurn(
              `${key.id} ${idempotencyKey}`,
              idempotency.inTransaction(once(idempotencyKey), Sent, fresh)
            )
        if (accepted !== undefined) yield* count(sender.owner, accepted)
        return { sent, isReplay: accepted === undefined }
      })
      return Sending.of({
        send: (asked) => inTime(send(asked)),
        test: (project, serverUrl) => inTime(test(project, serverUrl))
      })
    })
  )
}

/** Twins at one process wait for each other here: a connection of Postgres each would leave none for others. */
const makeTurns = () => {
  const turns = new Map<string, { readonly lock: Semaphore.Semaphore; users: number }>()
  return <A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const turn = turns.get(name) ?? { lock: Semaphore.makeUnsafe(1), users: 0 }
      turns.set(name, turn)
      turn.users++
      return Effect.ensuring(
        turn.lock.withPermits(1)(effect),
        Effect.sync(() => --turn.users > 0 || turns.delete(name))
      )
    })
}

/** The message by which owners try their channels. */
const testOf = ({ name }: ProjectRow): SendFields => ({
  app: name,
  message: "This is a test. Messages of this project look like this.",
  title: "Test",
  url: null,
  project: null,
  body: null,
  bodyFormat: "auto",
  priority: "normal",
  attachments: []
})

const messagesAccepted = Metric.counter("signalbox_notify_messages_total", {
  description: "Accepted messages: one for each project of a send",
  incremental: true
})

/** Files are compared by their content: ids are new with each upload. */
const onceOf = ({ fields, files = [], key }: Send, idempotencyKey: string) => ({
  scope: `message:${key.id}`,
  userId: key.user_id,
  key: idempotencyKey,
  request: [JSON.stringify(fields), ...files.map(({ sha256 }) => sha256)]
})

/** The projects that a send means, each once; those that the key does not cover are as if they did not exist. */
const makeCovered = Effect.gen(function* () {
  const directory = yield* ProjectDirectory
  const keys = yield* ProjectKeys

  const find = (key: ProjectKeyRow, refs: ReadonlyArray<string>) => {
    const ids = new Set(keys.covered(key).map(({ id }) => id))
    return refs.map((ref) => {
      const project = directory.named(key.user_id, ref)
      return project !== undefined && ids.has(project.id) ? project : undefined
    })
  }
  return Effect.fnUntraced(function* (key: ProjectKeyRow, refs: ReadonlyArray<string> | null) {
    if (refs === null) {
      const all = keys.covered(key)
      return all.length > 0 ? all : yield* NotFound.of("project: this key covers none", { param: "project" })
    }
    let found = find(key, refs)
    if (found.includes(undefined)) {
      // Another process may have made it a moment ago.
      yield* Effect.catchTag(directory.refreshNow, "CacheFailed", Effect.die)
      found = find(key, refs)
    }
    const unknown = found.indexOf(undefined)
    if (unknown >= 0) {
      const field = refs.length === 1 ? "project" : `project[${unknown}]`
      return yield* NotFound.of(`${field}: not found`, { param: field })
    }
    return [...new Set(found.filter((project) => project !== undefined))]
  })
})

interface Accepting extends Pick<Send, "fields" | "serverUrl"> {
  /** `keyId` null: the owner */
  readonly sender: { readonly owner: string; readonly keyId: string | null }
  readonly projects: ReadonlyArray<ProjectRow>
}

interface Accepted {
  readonly sent: Sent
  readonly deliveries: number
}

interface FannedOut {
  readonly message: string
  readonly deliveries: number
  readonly recipients: number
  readonly held: number
}

/** Nothing was written: it is not known when messages by this schedule are due at this instant. */
interface Unknown {
  readonly missing: string
  readonly now_millis: number
}

/** A schedule that ends while its instants are written is asked for again. */
const fanOutsMax = 5

interface Writing extends Pick<Accepting, "fields" | "projects"> {
  readonly owner: string
  readonly keyId: string | null
  readonly ids: ReadonlyArray<string>
  readonly tokens: ReadonlyArray<LinkToken>
}

/** One statement, whose long texts are sent once: while it and the commit are under way the lanes are locked. */
const writing =
  (sql: SqlClient, deliveriesMax: number) =>
  ({ fields, ids, keyId, owner, projects, tokens }: Writing) =>
    sql<FannedOut | Unknown>`WITH fanned_out AS MATERIALIZED (
        SELECT * FROM deliveries_fan_out(${owner}, ${ids}::text[], ${projects.map(({ id }) => id)}::text[],
          ${deliveriesMax}, ${fields.priority === "high"})),
      added AS (
        INSERT INTO messages (id, project_id, recipients, queued_for_digest, link_hash, user_id, key_id, app,
          message, title, url, body, body_bytes, body_format, priority, attachments)
        SELECT m.id, m.project, coalesce(f.recipients, 0), coalesce(f.held, 0), decode(m.hash, 'hex'), ${owner}, ${keyId}::text,
          ${fields.app}, ${fields.message}, ${fields.title}::text, ${fields.url}::text, ${fields.body}::text,
          ${Buffer.byteLength(fields.body ?? "")}::int, ${fields.bodyFormat}, ${fields.priority}, ${fields.attachments.length}::int
        FROM unnest(${ids}::text[], ${projects.map(({ id }) => id)}::text[],
          ${tokens.map(({ hash }) => hash.toString("hex"))}::text[]) AS m(id, project, hash)
          LEFT JOIN fanned_out f ON f.message = m.id
        WHERE NOT EXISTS (SELECT FROM fanned_out o WHERE o.missing IS NOT NULL))
      SELECT * FROM fanned_out`

/** Messages with their deliveries and jobs, in one transaction. */
const makeAccept = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const jobs = yield* Jobs
  const links = yield* Links
  const attachments = yield* Attachments
  const holds = yield* Holds
  const statement = writing(sql, limits.deliveriesPerSend)

  const write = Effect.fnUntraced(function* (messages: Writing) {
    for (let n = 0; n < fanOutsMax; n++) {
      const rows = yield* statement(messages)
      const unknown = rows.flatMap((row) => ("missing" in row && row.missing !== null ? [row] : []))
      if (unknown.length === 0) return rows as ReadonlyArray<FannedOut>
      yield* holds.know(
        unknown.map(({ missing }) => missing),
        unknown[0]?.now_millis ?? 0
      )
    }
    return yield* Effect.die(new Error("the instants of schedules pass while they are written"))
  })

  return ({ fields, projects, sender: { keyId, owner }, serverUrl }: Accepting) =>
    sql.withTransaction(
      Effect.gen(function* () {
        const ids = projects.map(() => newId("msg"))
        const tokens = ids.map(links.message)
        const rows = yield* write({ fields, ids, keyId, owner, projects, tokens })
        const byMessage = new Map(rows.map((row) => [row.message, row]))
        const made = rows.reduce((sum, { deliveries: count }) => sum + count, 0)
        if (made > limits.deliveriesPerSend)
          return yield* BadRequest.of(
            `project: more than ${limits.deliveriesPerSend} deliveries; send to fewer at a time`,
            { param: "project", code: "invalid_value" }
          )
        if (made > 0) yield* jobs.offered(deliveries)
        const countOf = (id: string, name: "recipients" | "held") => byMessage.get(id)?.[name] ?? 0
        if (fields.attachments.length > 0) yield* attachments.claim(owner, fields.attachments, ids)
        const hasPage = fields.body !== null || fields.attachments.length > 0
        const messages = projects.map(({ id: projectId, name, slug }, index) => {
          const id = ids[index] ?? ""
          return {
            id,
            project: { id: projectId, slug, name },
            recipients: countOf(id, "recipients"),
            queuedForDigest: countOf(id, "held"),
            ...(hasPage && {
              viewUrl: `${serverUrl}/n/m/${tokens[index]?.token}`,
              attachments: fields.attachments.length
            })
          }
        })
        const recipients = messages.reduce((sum, message) => sum + message.recipients, 0)
        return { sent: { ok: true as const, recipients, messages }, deliveries: made }
      })
    )
})
