import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SqlClient } from "effect/sql/SqlClient"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { type SubscriberList, subscribersLimitDefault } from "#schemas/notify/Subscriber.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Projects } from "../projects/Projects.ts"
import { Joining } from "./Joining.ts"
import { unstored } from "./SettingsRoutes.ts"
import { Subscribers } from "./Subscribers.ts"

type Shown = SubscriberList["subscribers"][number]

interface Row extends Omit<Shown, "joinedAt"> {
  readonly joined_at: Date
}

/** An owner's view of subscribers: names, kinds and states, no addresses. */
export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "subscribers",
  Effect.fnUntraced(function* (handlers) {
    const projects = yield* Projects
    const sql = yield* SqlClient
    const joining = yield* Joining
    const subscribers = yield* Subscribers
    const own = (ref: string) => Effect.flatMap(CurrentKey, ({ ownerId }) => projects.find(ref, ownerId))

    return handlers.handleAll({
      listSubscribers: ({ params, query }) =>
        Effect.gen(function* () {
          const project = yield* own(params.id)
          const page = pageOf(query, subscribersLimitDefault)
          const rows = yield* sql<Row>`
            SELECT s.id, s.name, p.delivery, p.created_at AS joined_at,
              coalesce((SELECT json_agg(json_build_object('id', c.id, 'kind', c.kind, 'state', c.state)
                ORDER BY c.created_at, c.id) FROM channels c WHERE c.subscriber_id = s.id), '[]') AS channels
            FROM project_subscriptions p JOIN subscribers s ON s.id = p.subscriber_id
            WHERE p.project_id = ${project.id}
            ORDER BY p.created_at DESC, s.id LIMIT ${page.limit} OFFSET ${page.offset}`
          const counts = yield* projects.subscribers([project])
          return {
            subscribers: rows.map(({ joined_at, ...row }): Shown => ({
              ...row,
              joinedAt: joined_at.toISOString()
            })),
            meta: { ...page, total: counts.get(project.id) ?? 0 }
          }
        }).pipe(storeAway),
      addSubscriber: ({ params, payload }) =>
        Effect.gen(function* () {
          yield* unstored
          const project = yield* own(params.id)
          const { channel, secret = "", subscriberId } = yield* joining.add(project, payload)
          const { createdAt, id, kind, state } = channel
          return {
            id: subscriberId,
            name: payload.name,
            delivery: "inherit" as const,
            channels: [{ id, kind, state }],
            joinedAt: createdAt.toISOString(),
            secret
          }
        }).pipe(storeAwayUntimed),
      removeSubscriber: ({ params }) =>
        Effect.gen(function* () {
          const project = yield* own(params.id)
          const isGone = yield* subscribers.leaveProject(params.subscriberId, project.id)
          return isGone ? { deleted: true as const } : yield* notFound("Subscriber")
        }).pipe(storeAway)
    })
  })
)
