import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { makeDropWaiting } from "../subscribers/DropWaiting.ts"

/** The address of a chat's channel: a chat is one channel. */
export const chatAddress = (chatId: number): string => String(chatId)

/**
 * Follows a group that became a supergroup, whose chat has another id: its channel goes on there, with what waits. Where the new
 * chat has joined meanwhile, that is the channel from now on. Telegram may tell it several times: once is enough.
 */
export const makeMigrate = Effect.gen(function* () {
  const sql = yield* SqlClient
  const dropWaiting = yield* makeDropWaiting
  return (from: number, to: number): Effect.Effect<void, SqlError> =>
    sql.withTransaction(
      Effect.gen(function* () {
        const chats = yield* sql<{ id: string; address: string }>`SELECT id, address FROM channels
          WHERE kind = 'telegram' AND address IN (${chatAddress(from)}, ${chatAddress(to)}) ORDER BY id FOR UPDATE`
        const old = chats.find(({ address }) => address === chatAddress(from))
        if (old === undefined) return
        if (chats.length > 1) {
          yield* dropWaiting([old.id])
          yield* sql`DELETE FROM channels WHERE id = ${old.id}`
          return
        }
        const target = JSON.stringify({ chatId: to, isGroup: true })
        yield* sql`UPDATE channels SET address = ${chatAddress(to)}, target = ${target}::jsonb WHERE id = ${old.id}`
      })
    )
})
