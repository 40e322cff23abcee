import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SentBody } from "./Stage.ts"

type SentMessage = SentBody["messages"][number]

/** The files of a message, in their order. */
export const filesOf = Effect.fnUntraced(function* (message: SentMessage | undefined) {
  const sql = yield* SqlClient
  return yield* sql<{
    id: string
    filename: string
    type: string
    sha256: string
  }>`SELECT a.id, a.filename, a.content_type AS type, encode(a.sha256, 'hex') AS sha256
    FROM message_attachments m JOIN attachments a ON a.id = m.attachment_id
    WHERE m.message_id = ${message?.id ?? ""} ORDER BY m.place`
})

/** Their bytes, as the message's page has them. */
export const contentsOf = Effect.fnUntraced(function* (message: SentMessage | undefined) {
  const files = yield* filesOf(message)
  return yield* Effect.forEach(files, ({ filename, id }) =>
    Effect.promise(async () => {
      const answer = await fetch(`${message?.viewUrl}/a/${id}`)
      return { filename, status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
    })
  )
})

/** Uploads of an owner that no message has. */
export const unusedOf = Effect.fnUntraced(function* (userId: string) {
  const sql = yield* SqlClient
  const rows = yield* sql`SELECT id FROM attachments WHERE user_id = ${userId} AND state = 'unused'`
  return rows.length
})
