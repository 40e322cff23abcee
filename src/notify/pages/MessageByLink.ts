import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import type { Body } from "#streams/notify/bodies/Body.ts"
import type { ShownMessage } from "./MessagePage.ts"

/** A message as its link finds it, without its body. */
export interface LinkedMessage {
  readonly id: string
  /** the user whose message it is */
  readonly owner: string
  /** the project's name */
  readonly project: string
  readonly app: string
  readonly title: string | null
  readonly message: string
  readonly url: string | null
  readonly priority: ShownMessage["priority"]
  readonly bodyBytes: number
  readonly bodyFormat: Body["format"]
  readonly createdAt: Date
  /** it is older than messages are kept */
  readonly isOver: boolean
}

const form = /^[0-9A-Za-z]{40}$/

/** Finds messages by the tokens of their links. */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { messageDays } = yield* AppConfig
  const live = sql`projects p WHERE p.deleted_at IS NULL AND p.id =`
  return {
    /** "gone": it is older than messages are kept. undefined: there is none, or it was deleted. */
    find: Effect.fnUntraced(function* (token: string) {
      if (!form.test(token)) return undefined
      const hash = hashOf(token)
      const [found] =
        yield* sql<LinkedMessage>`SELECT m.id, m.user_id AS owner, p.name AS project, m.app, m.title,
          m.message, m.url, m.priority, m.body_bytes AS "bodyBytes", m.body_format AS "bodyFormat",
          m.created_at AS "createdAt", m.created_at + ${messageDays} * interval '1 day' <= now() AS "isOver"
        FROM messages m, ${live} m.project_id AND m.link_hash = ${hash}`
      if (found !== undefined) return found.isOver ? ("gone" as const) : found
      const [gone] = yield* sql`SELECT 1 FROM gone_messages g, ${live} g.project_id AND g.link_hash = ${hash}`
      return gone === undefined ? undefined : ("gone" as const)
    }),
    /** undefined: it was deleted meanwhile */
    textOf: ({ id }: LinkedMessage) =>
      Effect.map(
        sql<{ body: string | null }>`SELECT body FROM messages WHERE id = ${id}`,
        ([row]) => row?.body ?? undefined
      )
  }
})
