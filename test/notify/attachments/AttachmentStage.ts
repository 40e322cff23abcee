import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Attachment } from "#schemas/notify/Attachment.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { api } from "#test/notify/Stage.ts"

interface Upload {
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: NonNullable<RequestInit["body"]>
}

/** The answer to an upload. Without a type, unless the headers have one. */
export const upload = (key: string, { body = "hello", headers = {}, query = "" }: Upload = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `${api}/attachments${query}`, {
      key,
      body: typeof body === "string" ? new TextEncoder().encode(body) : body,
      headers
    })
  )

/** An upload that was kept. */
export const uploaded = (key: string, asked: Upload = {}) =>
  Effect.map(upload(key, asked), (answer) => {
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
    return answer.json as Attachment
  })

/** An attachment's row, and the bytes that its blob has a reference for. */
export const rowOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{
    state: string
    seconds: number
    isReferred: boolean
  }>`SELECT state, extract(epoch FROM expires_at - now())::int AS seconds,
      EXISTS (SELECT FROM blob_refs WHERE ref = 'attachment ' || id) AS "isReferred" FROM attachments WHERE id = ${id}`
  return row
})

/** Moves the expiry of an attachment into the past. */
export const expire = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  yield* sql`UPDATE attachments SET expires_at = now() - interval '1 second' WHERE id = ${id}`
})

/** The bytes that count for the owner's quotas, and those that are on their way. */
export const usageOf = Effect.fnUntraced(function* (userId: string) {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ attachments: number; files: number; reserved: number }>`SELECT
    coalesce((SELECT bytes FROM blob_usage WHERE user_id = ${userId} AND pool = 'attachments'), 0)::int AS attachments,
    coalesce((SELECT bytes FROM blob_usage WHERE user_id = ${userId} AND pool = 'files'), 0)::int AS files,
    coalesce((SELECT sum(reserved) FROM blob_uploads WHERE user_id = ${userId}), 0)::int AS reserved`
  return row
})
