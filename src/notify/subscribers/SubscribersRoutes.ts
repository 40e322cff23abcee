import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { subscribersLimitDefault } from "#schemas/notify/Subscriber.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Projects } from "../projects/Projects.ts"
import { Joining } from "./Joining.ts"
import { unstored } from "./SettingsRoutes.ts"
import { Subscribers } from "./Subscribers.ts"

/** An owner's view of subscribers: names, kinds and states, no addresses. */
export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "subscribers",
  Effect.fnUntraced(function* (handlers) {
    const projects = yield* Projects
    const joining = yield* Joining
    const subscribers = yield* Subscribers
    const own = (ref: string) => Effect.flatMap(CurrentKey, ({ ownerId }) => projects.find(ref, ownerId))

    return handlers.handleAll({
      listSubscribers: ({ params, query }) =>
        Effect.gen(function* () {
          const project = yield* own(params.id)
          const page = pageOf(query, subscribersLimitDefault)
          const counts = yield* projects.subscribers([project])
          return {
            subscribers: yield* subscribers.ofProject(project.id, page),
            meta: { ...page, total: counts.get(project.id) ?? 0 }
          }
        }).pipe(storeAway),
      addSubscriber: ({ params, payload }) =>
        Effect.gen(function* () {
          yield* unstored
          const project = yield* own(params.id)
          const { channel, subscriberId, ...added } = yield* joining.add(project, payload)
          const { createdAt, id, kind, state } = channel
          return {
            id: subscriberId,
            name: payload.name,
            delivery: "inherit" as const,
            channels: [{ id, kind, state }],
            joinedAt: createdAt.toISOString(),
            ...added
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
