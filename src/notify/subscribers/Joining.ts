import { Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type BadRequest,
  Conflict,
  Gone,
  NotFound,
  type ServiceUnavailable,
  type Unauthorized
} from "#schemas/core/Problem.ts"
import type { ProjectRow } from "#schemas/notify/Project.ts"
import type { Joining as Asked } from "#schemas/notify/Settings.ts"
import type { NewSubscriber } from "#schemas/notify/Subscriber.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newId } from "#src/infra/crypto/Tokens.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { ProjectDirectory } from "../projects/Projects.ts"
import type { CodeOrder } from "../telegram/TelegramCodes.ts"
import type { ChannelAddress } from "./ChannelAddress.ts"
import { type Added, Channels, noAddress } from "./Channels.ts"
import { Confirmations } from "./Confirmations.ts"
import { changed, type DeliveryColumns, newcomer } from "./DeliverySettings.ts"
import { newToken, SubscriberTokens } from "./SubscriberTokens.ts"

type Fault = BadRequest | Unauthorized | NotFound | Gone | Conflict | ServiceUnavailable | SqlError

/** Subscribing to projects by their links. Source: contract/notify#subscribers. */
export class Joining extends Context.Service<
  Joining,
  {
    /** the project of a link's token; `NotFound`: of none, or of one that was replaced; `Gone`: joining is closed */
    readonly project: (token: string) => Effect.Effect<ProjectRow, NotFound | Gone | SqlError>
    /** `by`: the token of the subscriber who joins, where they have one; `token` is theirs from then on */
    readonly join: (
      link: string,
      by: string | undefined,
      asked: Asked,
      serverUrl: string
    ) => Effect.Effect<{ readonly token: string; readonly added: Added | undefined }, Fault>
    /** Within a transaction: a chat of Telegram, whose members pressed start. `name`: of the project */
    readonly joinChat: (
      chat: ChatJoining
    ) => Effect.Effect<
      { readonly name: string | undefined },
      Unauthorized | NotFound | Gone | Conflict | SqlError
    >
    /** A webhook that the project's owner adds. */
    readonly add: (
      project: ProjectRow,
      subscriber: NewSubscriber
    ) => Effect.Effect<Added & { readonly subscriberId: string }, Exclude<Fault, Gone>>
  }
>()("signalbox/notify/Joining") {
  static readonly layer = Layer.effect(
    Joining,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const channels = yield* Channels
      const confirmations = yield* Confirmations
      const tokens = yield* SubscriberTokens
      const project = yield* makeProject
      const { add, enter, joinChat } = entering({
        channels,
        sql,
        subscribersMax: limits.subscribersPerProject
      })
      return Joining.of({
        project,
        joinChat,
        join: Effect.fn("Joining.join")(function* (link, by, asked, serverUrl) {
          const { name, ...given } = asked
          const row = yield* project(link)
          const settings = yield* changed(newcomer, asked)
          const known = by === undefined ? undefined : yield* tokens.holder(by)
          if (by !== undefined && known === undefined) return yield* invalidKey()
          const address = yield* channels.check(given)
          if (address === undefined && known === undefined) return yield* noAddress()
          const entering = { by, known, link, name, project: row, settings }
          // A webhook is asked before its subscriber joins: where it does not take its link, nothing has changed.
          if (known !== undefined && address !== undefined && address.kind !== "push") {
            const added = yield* channels.addChecked(known, address, serverUrl)
            const { token } = yield* Effect.tapError(
              sql.withTransaction(enter({ ...entering, address: undefined })),
              () => Effect.catchTag(channels.remove(known, added.channel.id), "NotFound", () => Effect.void)
            )
            return { token, added }
          }
          const joined = yield* sql.withTransaction(enter({ ...entering, address }))
          const { added, isNew, subscriberId, token } = joined
          if (address !== undefined && added !== undefined)
            yield* Effect.tapErrorTag(
              confirmations.ask(added.channel.id, address, serverUrl),
              "BadRequest",
              () =>
                isNew ? Effect.asVoid(sql`DELETE FROM subscribers WHERE id = ${subscriberId}`) : Effect.void
            )
          return { token, added }
        }),
        add: Effect.fn("Joining.add")(function* (row, { name, ...webhook }) {
          const address = yield* channels.check({ webhook: { ...webhook, name } }, "")
          return address === undefined
            ? yield* noAddress()
            : yield* sql.withTransaction(add(row.id, name, address))
        })
      })
    })
  )
}

const noProject = () =>
  NotFound.of("This link leads to no project", { code: "link_not_found", param: "token" })

const closed = () => Gone.of("Joining this project is closed", { code: "joining_closed", param: "token" })

const form = /^[0-9A-Za-z]{40}$/

/** Look-ups under way at once for links that memory does not know: guesses must not take Postgres's connections. */
const lookupsAtOnce = 2

const makeProject = Effect.gen(function* () {
  const directory = yield* ProjectDirectory
  const sql = yield* SqlClient
  const ask = (yield* Semaphore.make(lookupsAtOnce)).withPermits(1)
  return Effect.fnUntraced(function* (token: string) {
    if (!form.test(token)) return yield* noProject()
    const hash = hashOf(token)
    // Another process may have made it a moment ago.
    const row =
      directory.by("join", hash.toString("hex")) ??
      (yield* ask(
        directory.first(
          sql`SELECT ${directory.columns} FROM projects WHERE join_hash = ${hash} AND ${directory.live}`
        )
      ))
    if (row === undefined) return yield* noProject()
    return row.joining === "link" ? row : yield* closed()
  })
})

interface Entering {
  readonly address: ChannelAddress | undefined
  readonly by: string | undefined
  /** the subscriber whose token `by` is */
  readonly known: string | undefined
  readonly link: string
  readonly name: string | undefined
  readonly project: ProjectRow
  /** of a new subscriber; those of another stay */
  readonly settings: DeliveryColumns
}

/** A code's order, and the chat in which it was used. */
interface ChatJoining extends CodeOrder {
  readonly address: ChannelAddress
}

interface Parts {
  readonly channels: Channels["Service"]
  readonly sql: SqlClient
  readonly subscribersMax: number
}

const making = (sql: SqlClient) => (id: string, name: string, token: string, settings: DeliveryColumns) =>
  sql`INSERT INTO subscribers ${sql.insert({ id, name, token_hash: hashOf(token), ...settings })}`

interface Known extends Pick<Entering, "by" | "name"> {
  readonly subscriberId: string
  readonly token: string
}

/** Whether the subscriber is there still. The token that was shown is not written anew: another request may have replaced it. */
const renewing = (sql: SqlClient) =>
  Effect.fnUntraced(function* ({ by, name, subscriberId, token }: Known) {
    const isTheirs =
      by === undefined
        ? sql`id = ${subscriberId}`
        : sql`id = ${subscriberId} AND ${hashOf(by)} IN (token_hash, bot_token_hash)`
    const renewed = by === undefined ? sql`, token_hash = ${hashOf(token)}` : sql``
    const rows =
      yield* sql`UPDATE subscribers SET name = coalesce(${name ?? null}, name), idle_since = NULL${renewed}
      WHERE ${isTheirs} RETURNING 1`
    return rows.length > 0
  })

/** Within a transaction: the project, as it is joined. */
const subscribing = ({ sql, subscribersMax }: Pick<Parts, "sql" | "subscribersMax">) => {
  /** The link is good until this transaction ends, and no other one joins the project before. */
  const hold = Effect.fnUntraced(function* (id: string, joinHash: Buffer) {
    const [row] = yield* sql<{ joining: string; name: string }>`SELECT joining, name FROM projects
      WHERE id = ${id} AND join_hash = ${joinHash} AND deleted_at IS NULL FOR NO KEY UPDATE`
    if (row === undefined) return yield* noProject()
    if (row.joining !== "link") return yield* closed()
    return row
  })
  const subscribe = Effect.fnUntraced(function* (projectId: string, subscriberId: string, isNew: boolean) {
    const there = yield* sql`UPDATE project_subscriptions
      SET delivery = CASE delivery WHEN 'muted' THEN 'inherit' ELSE delivery END
      WHERE project_id = ${projectId} AND subscriber_id = ${subscriberId} RETURNING 1`
    if (there.length > 0) return
    const [counted] = yield* sql<{ count: number }>`
      SELECT count(*)::int AS count FROM project_subscriptions WHERE project_id = ${projectId}`
    if ((counted?.count ?? 0) >= subscribersMax)
      return yield* Conflict.of(
        `This project has ${subscribersMax} subscribers, which is the most it can have`,
        {
          code: "too_many_subscribers"
        }
      )
    // One who was there before gets nothing of that time.
    yield* sql`INSERT INTO project_subscriptions (project_id, subscriber_id, after_seq)
      VALUES (${projectId}, ${subscriberId}, ${isNew ? sql`0` : sql`nextval('job_seqs')`})`
  })
  return { hold, subscribe }
}

/** Within a transaction: the subscriber, old or new, their channel and the project; or a webhook of the project's owner. */
const entering = ({ channels, sql, subscribersMax }: Parts) => {
  const { hold, subscribe } = subscribing({ sql, subscribersMax })
  const make = making(sql)
  const renew = renewing(sql)
  const add = Effect.fnUntraced(function* (projectId: string, name: string, address: ChannelAddress) {
    const [row] =
      yield* sql`SELECT id FROM projects WHERE id = ${projectId} AND deleted_at IS NULL FOR NO KEY UPDATE`
    if (row === undefined) return yield* notFound("Project")
    const subscriberId = newId("sbr")
    // No one has its token.
    yield* make(subscriberId, name, newToken(), newcomer)
    const added = yield* channels.put(subscriberId, address, true)
    yield* subscribe(projectId, subscriberId, true)
    return { ...added, subscriberId }
  })
  const enter = Effect.fnUntraced(function* ({
    address,
    by,
    known,
    link,
    name,
    project,
    settings
  }: Entering) {
    yield* hold(project.id, hashOf(link))
    const holder = address === undefined ? undefined : yield* channels.lock(address)
    const present = known ?? holder
    const subscriberId = present ?? newId("sbr")
    const token = by ?? newToken()
    const isNew = present === undefined
    if (isNew) yield* make(subscriberId, name ?? "", token, settings)
    // They may have left since the token was looked at.
    else if (!(yield* renew({ by, name, subscriberId, token }))) return yield* invalidKey()
    const added = address === undefined ? undefined : yield* channels.put(subscriberId, address)
    yield* subscribe(project.id, subscriberId, isNew)
    return { added, isNew, subscriberId, token }
  })
  const joinChat: Joining["Service"]["joinChat"] = Effect.fnUntraced(function* ({
    address,
    name,
    project,
    subscriberId: known,
    timezone
  }) {
    const held = project === undefined ? undefined : yield* hold(project.id, project.joinHash)
    const holder = yield* channels.lock(address)
    const present = known ?? holder
    const subscriberId = present ?? newId("sbr")
    const isNew = present === undefined
    // No one has its token: the bot makes another for those who ask for their settings.
    if (isNew) yield* make(subscriberId, name, newToken(), { ...newcomer, timezone })
    yield* channels.put(subscriberId, address)
    if (project !== undefined) yield* subscribe(project.id, subscriberId, isNew)
    return { name: held?.name }
  })
  return { add, enter, joinChat }
}
