import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newId, newSecret } from "#src/infra/crypto/Tokens.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"

const codeDigits = 32
const form = /^[0-9A-Za-z]{32}$/

/** The wishes of the one who asked for a code. */
export interface CodeOrder {
  /** the project that is joined, and the hash of the link by which */
  readonly project: { readonly id: string; readonly joinHash: Buffer } | undefined
  /** the chat will be theirs; undefined: its own subscriber's, or a new one's */
  readonly subscriberId: string | undefined
  /** of a new subscriber */
  readonly name: string
  readonly timezone: string
}

export interface MadeCode {
  readonly id: string
  /** 32 base62 digits; its row has the hash alone */
  readonly code: string
  readonly expiresAt: Date
}

interface Row {
  readonly project_id: string | null
  readonly join_hash: Buffer | null
  readonly subscriber_id: string | null
  readonly name: string
  readonly timezone: string
}

/** Codes by which chats of Telegram join: each for 15 minutes, and once. Source: contract/telegram#joining. */
export class TelegramCodes extends Context.Service<
  TelegramCodes,
  {
    readonly make: (order: CodeOrder) => Effect.Effect<MadeCode, SqlError>
    /** Within the transaction of what it is used for. undefined: it is none, it was used, or it is too old */
    readonly use: (code: string) => Effect.Effect<CodeOrder | undefined, SqlError>
    /** undefined: there is none of this id, any more */
    readonly state: (id: string) => Effect.Effect<"waiting" | "used" | "expired" | undefined, SqlError>
  }
>()("signalbox/notify/TelegramCodes") {
  static readonly layer = Layer.effect(
    TelegramCodes,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      return TelegramCodes.of({
        make: Effect.fn("TelegramCodes.make")(function* ({ name, project, subscriberId, timezone }) {
          const [id, code] = [newId("tgc"), newSecret("").slice(0, codeDigits)]
          const [row] = yield* sql<{ expires_at: Date }>`INSERT INTO telegram_codes
            (id, hash, project_id, join_hash, subscriber_id, name, timezone, expires_at)
            VALUES (${id}, ${hashOf(code)}, ${project?.id ?? null}, ${project?.joinHash ?? null}, ${subscriberId ?? null},
              ${name}, ${timezone}, now() + ${limits.telegramCodeMillis} * interval '1 millisecond') RETURNING expires_at`
          if (row === undefined) return yield* Effect.die(new Error("a code was not written"))
          return { id, code, expiresAt: row.expires_at }
        }),
        use: Effect.fnUntraced(function* (code) {
          if (!form.test(code)) return undefined
          const [row] = yield* sql<Row>`UPDATE telegram_codes SET used_at = now()
            WHERE hash = ${hashOf(code)} AND used_at IS NULL AND expires_at > now() RETURNING *`
          if (row === undefined) return undefined
          const { join_hash: joinHash, name, project_id: id, subscriber_id: subscriberId, timezone } = row
          const project = id === null || joinHash === null ? undefined : { id, joinHash }
          return { project, subscriberId: subscriberId ?? undefined, name, timezone }
        }),
        state: (id) =>
          Effect.map(
            sql<{ state: "waiting" | "used" | "expired" }>`SELECT CASE WHEN used_at IS NOT NULL THEN 'used'
              WHEN expires_at > now() THEN 'waiting' ELSE 'expired' END AS state FROM telegram_codes WHERE id = ${id}`,
            ([row]) => row?.state
          )
      })
    })
  )
}

/** Old codes, and turns of chats that were not written to for long. */
export const telegramSweep = Sweeps.layer({
  name: "telegram",
  every: "sweepEveryMillis",
  run: Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const sql = yield* SqlClient
    yield* sql`DELETE FROM telegram_codes WHERE expires_at < now() - ${limits.telegramCodeKeptMillis} * interval '1 millisecond'`
    yield* sql`DELETE FROM telegram_turns WHERE chat <> 0 AND at < now() - interval '1 hour'`
  })
})
