import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"
import { confirmationTo } from "#streams/notify/channels/Kinds.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newSecret } from "#src/infra/crypto/Tokens.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import type { ChannelAddress } from "./ChannelAddress.ts"

/** Of tokens: guesses of another form must not take Postgres's time. */
const form = /^[0-9A-Za-z]{40}$/

export const confirmPath = "/n/confirm"

/** A webhook that its link names. */
export interface Confirming {
  readonly host: string
  /** the subscriber's name, which may be "" */
  readonly subscriber: string
  /** It gets messages, or did until it was turned off. */
  readonly isConfirmed: boolean
}

/**
 * A webhook gets no message before the link that was posted there is confirmed: else everybody could have messages sent to
 * everybody. Source: contract/notify#subscribers.
 */
export class Confirmations extends Context.Service<
  Confirmations,
  {
    /** Posts the link to a webhook. One that does not take it is deleted. */
    readonly ask: (
      channelId: string,
      address: ChannelAddress,
      serverUrl: string
    ) => Effect.Effect<void, BadRequest | SqlError>
    /** undefined: no webhook has this token's link */
    readonly find: (token: string) => Effect.Effect<Confirming | undefined, SqlError>
    readonly confirm: (token: string) => Effect.Effect<Confirming | undefined, SqlError>
  }
>()("signalbox/notify/Confirmations") {
  static readonly layer = Layer.effect(
    Confirmations,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const egress = yield* Egress
      const find = Effect.fnUntraced(function* (token: string) {
        if (!form.test(token)) return undefined
        const [row] = yield* sql<{ address: string; state: string; name: string }>`
          SELECT c.address, c.state, s.name FROM channels c JOIN subscribers s ON s.id = c.subscriber_id
          WHERE c.confirm_hash = ${hashOf(token)}`
        return row === undefined
          ? undefined
          : {
              host: new URL(row.address).host,
              subscriber: row.name,
              isConfirmed: row.state !== "unconfirmed"
            }
      })
      return Confirmations.of({
        ask: Effect.fn("Confirmations.ask")(function* (id, address, serverUrl) {
          const token = newSecret("")
          const url = `${serverUrl}${confirmPath}/${token}`
          const request = confirmationTo(address, { channelId: id, url }, yield* Clock.currentTimeMillis)
          if (request === undefined) return
          // Before the link goes out: its receiver may open it at once.
          yield* sql`UPDATE channels SET confirm_hash = ${hashOf(token)} WHERE id = ${id}`
          const isTaken = yield* egress
            .fetch({
              ...request,
              totalMillis: limits.confirmationMillis,
              maxBodyBytes: limits.confirmationAnswerBytes,
              isCutAllowed: true
            })
            .pipe(
              Effect.map(({ status }) => status >= 200 && status < 300),
              Effect.catchTags({
                EgressFailed: () => Effect.succeed(false),
                EgressRefused: () => Effect.succeed(false)
              })
            )
          if (isTaken) return
          yield* sql`DELETE FROM channels WHERE id = ${id}`
          return yield* invalidField("webhook.url", "did not take the link by which it is confirmed")
        }),
        find,
        confirm: Effect.fnUntraced(function* (token) {
          if (!form.test(token)) return undefined
          yield* sql`UPDATE channels SET state = 'active' WHERE confirm_hash = ${hashOf(token)} AND state = 'unconfirmed'`
          return yield* find(token)
        })
      })
    })
  )
}
