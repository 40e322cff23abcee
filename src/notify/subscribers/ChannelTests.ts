import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { Conflict, type NotFound } from "#schemas/core/Problem.ts"
import type { Channel, Tested } from "#schemas/notify/Settings.ts"
import type { Notice } from "#streams/notify/channels/Channel.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Refusal } from "#src/infra/gates/Turns.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import * as DeliveryMetrics from "../delivery/DeliveryMetrics.ts"
import { lose } from "../delivery/DeliveryEnds.ts"
import type { DeliveryChannel } from "../delivery/DeliveryRows.ts"
import { ChannelGates, throughGates } from "../delivery/ChannelGates.ts"
import { makeExchange } from "../delivery/Exchange.ts"
import { makeMigrate } from "../telegram/ChatMoves.ts"
import { makeDropWaiting } from "./DropWaiting.ts"

type Row = DeliveryChannel & Pick<Channel, "state">

/**
 * Notifications by which subscribers try a channel: sent at once, beside what waits, and told how it went. Source:
 * contract/notify#subscribers.
 */
export class ChannelTests extends Context.Service<
  ChannelTests,
  {
    readonly run: (
      subscriberId: string,
      channelId: string,
      settingsUrl: string
    ) => Effect.Effect<Tested, NotFound | Conflict | SqlError>
  }
>()("signalbox/notify/ChannelTests") {
  static readonly layer = Layer.effect(
    ChannelTests,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const metrics = yield* DeliveryMetrics.make
      const dropWaiting = yield* makeDropWaiting
      const exchange = yield* makeExchange(metrics)
      const migrate = yield* makeMigrate
      const through = throughGates(yield* ChannelGates, limits)
      // The channel before its deliveries, as all lock them.
      const end = (id: string, channel: DeliveryChannel) =>
        sql.withTransaction(
          Effect.flatMap(lose(sql, id, channel), (lost) =>
            lost.length === 0 ? Effect.void : dropWaiting([id])
          )
        )
      return ChannelTests.of({
        run: Effect.fn("ChannelTests.run")(function* (subscriberId, id, settingsUrl) {
          const [row] =
            yield* sql<Row>`SELECT kind, target, state, dead_in_a_row AS "deadInARow" FROM channels
            WHERE id = ${id} AND subscriber_id = ${subscriberId}`
          if (row === undefined) return yield* notFound("Channel")
          if (row.state === "unconfirmed")
            return yield* Conflict.of("Open the link that was posted to the webhook first")
          const notice = noticeOf(yield* Clock.currentTimeMillis, limits.deliveryMillis, settingsUrl)
          const sent = yield* through(subscriberId, row, exchange(row, notice))
          if ("restMillis" in sent) return { delivered: false, error: refused(sent) }
          const { verdict } = sent
          if (verdict._tag === "Gone") yield* end(id, row)
          if (verdict._tag === "Moved" && row.kind === "telegram")
            yield* migrate(row.target.chatId, verdict.chatId)
          return verdict._tag === "Delivered"
            ? { delivered: true, error: null }
            : { delivered: false, error: verdict.error }
        })
      })
    })
  )
}

const refused = ({ isBusy, restMillis }: Refusal): string =>
  `its host ${isBusy ? "has as many requests as it may have" : "rests after failures"}: try again in ${Math.ceil(restMillis / 1_000)} s`

const noticeOf = (nowMillis: number, lifeMillis: number, settingsUrl: string): Notice => ({
  deliveryId: newId("dlv"),
  messageId: newId("msg"),
  project: { slug: "test", name: "Test" },
  app: "Signalbox",
  title: "A test",
  message: "Notifications of your projects reach you here.",
  pageUrl: settingsUrl,
  hasView: false,
  settingsUrl,
  priority: "normal",
  hasPaperclip: false,
  createdAtMillis: nowMillis,
  expiresAtMillis: nowMillis + lifeMillis
})
