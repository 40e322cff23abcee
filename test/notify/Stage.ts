import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { type Answer, TestServer, textOf } from "#test/harness/TestServer.ts"

export const live = { excludeTestServices: true } as const
export const api = "/api/v1"

export const invalidKey = "Invalid or missing API key"
export const otherKind = `${invalidKey}: use a project key (prj_…)`

export const faultOf = ({ json, status }: Answer): readonly [number, unknown] => [
  status,
  (json as { readonly error?: unknown }).error
]

export interface Stage {
  /** an account key */
  readonly key: string
  readonly userId: string
  /** the id of a new project */
  readonly project: (fields?: object) => Effect.Effect<string, never, TestServer>
  /** a new project key */
  readonly projectKey: (fields?: object) => Effect.Effect<string, never, TestServer>
}

/** A user who has projects and keys of their own. */
export const makeStage = Effect.gen(function* () {
  const { ask, makeUser } = yield* TestServer
  const { id: userId, key } = yield* makeUser()
  let made = 0
  const stage: Stage = {
    key,
    userId,
    project: (fields = {}) =>
      Effect.map(
        ask("POST", `${api}/projects`, { key, json: { name: `Project ${++made}`, ...fields } }),
        (answer) => textOf(answer, "id")
      ),
    projectKey: (fields = {}) =>
      Effect.map(
        ask("POST", `${api}/project-keys`, { key, json: { name: "sender", projects: "all", ...fields } }),
        (answer) => textOf(answer, "key")
      )
  }
  return stage
})

export interface Subscribed {
  readonly id: string
  readonly channels: ReadonlyArray<string>
}

/** A subscriber as joining makes it, without a channel. */
export const subscriber = Effect.fnUntraced(function* (
  projects: ReadonlyArray<string>,
  delivery = "inherit"
) {
  const sql = yield* SqlClient
  const id = newId("sbr")
  yield* Effect.orDie(
    sql`INSERT INTO subscribers ${sql.insert({ id, name: "Ada", token_hash: randomBytes(32) })}`
  )
  for (const project_id of projects)
    yield* Effect.orDie(
      sql`INSERT INTO project_subscriptions ${sql.insert({ project_id, subscriber_id: id, delivery })}`
    )
  return id
})

/** A subscriber with so many channels, whose push service asked for a pause: messages to them wait. */
export const subscribe = Effect.fnUntraced(function* (
  projects: ReadonlyArray<string>,
  { channels: count = 1, delivery = "inherit", state = "active" } = {}
) {
  const sql = yield* SqlClient
  const id = yield* subscriber(projects, delivery)
  const channels = Array.from({ length: count }, () => newId("chn"))
  for (const channel of channels) {
    const address = `https://push.example/${channel}`
    yield* Effect.orDie(
      sql`INSERT INTO channels (id, subscriber_id, kind, address, target, state)
        VALUES (${channel}, ${id}, 'push', ${address}, ${JSON.stringify({ endpoint: address })}::jsonb, ${state})`
    )
    yield* Effect.orDie(
      sql`INSERT INTO job_lanes (queue, lane, due_at, waiting, rests_until)
        VALUES ('deliveries', ${channel}, 'infinity', 0, now() + interval '1 hour')`
    )
  }
  const subscribed: Subscribed = { id, channels }
  return subscribed
})

/** Statements of other connections that name a table and wait for a lock. */
export const blocked = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    // A transaction looks at statistics once.
    yield* sql`SELECT pg_stat_clear_snapshot()`
    const rows = yield* sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
      AND wait_event_type = 'Lock' AND pid <> pg_backend_pid() AND query LIKE ${`%${table}%`}`
    return rows.length
  })

export interface SentBody {
  readonly ok: boolean
  readonly recipients: number
  readonly messages: ReadonlyArray<{
    readonly id: string
    readonly project: { readonly id: string; readonly slug: string; readonly name: string }
    readonly recipients: number
    readonly queuedForDigest: number
    readonly viewUrl?: string
    readonly attachments?: number
  }>
}

export const send = (key: string, fields: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `${api}/messages`, { key, headers, json: { app: "test", message: "hello", ...fields } })
  )

/** The answer to a send that was accepted. */
export const sent = (key: string, fields: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  Effect.map(send(key, fields, headers), (answer) => {
    if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
    return answer.json as SentBody
  })
