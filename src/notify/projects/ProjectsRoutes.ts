import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import type { ProjectRow } from "#schemas/notify/Project.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { Links } from "../Links.ts"
import { coverage, ProjectKeys } from "./ProjectKeys.ts"
import { Projects } from "./Projects.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

/** Shows rows with their counts of subscribers and the links by which people join. */
const makeShowing = Effect.gen(function* () {
  const projects = yield* Projects
  const links = yield* Links
  const urlFor = yield* serverUrlFor
  return Effect.fnUntraced(function* (rows: ReadonlyArray<ProjectRow>) {
    const counts = yield* projects.subscribers(rows)
    const url = urlFor(yield* HttpServerRequest.HttpServerRequest)
    return (row: ProjectRow) => ({
      ...row,
      subscribers: counts.get(row.id) ?? 0,
      joinUrl:
        row.joining === "link" ? `${url}/n/join/${links.join(row.id, row.join_generation).token}` : null
    })
  })
})

export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "projects",
  Effect.fnUntraced(function* (handlers) {
    const projects = yield* Projects
    const keys = yield* ProjectKeys
    const showing = yield* makeShowing
    const shownAll = (rows: ReadonlyArray<ProjectRow>) => Effect.map(showing(rows), (show) => rows.map(show))
    const shownOne = (row: ProjectRow) => Effect.map(showing([row]), (show) => show(row))

    return handlers.handleAll({
      listProjects: () =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          if (caller.kind !== "project") return { projects: yield* shownAll(projects.list(caller.ownerId)) }
          return yield* coverage(keys, caller)
        }).pipe(storeAway),
      createProject: ({ payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => projects.create(userId, payload)),
          Effect.flatMap(shownOne),
          storeAway
        ),
      readProject: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => projects.find(params.id, userId)),
          Effect.flatMap(shownOne),
          storeAway
        ),
      updateProject: ({ params, payload }) =>
        owner.pipe(
          Effect.flatMap((userId) => projects.update(params.id, userId, payload)),
          Effect.flatMap(shownOne),
          storeAway
        ),
      deleteProject: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => projects.remove(params.id, userId)),
          storeAway,
          Effect.as({ deleted: true as const })
        ),
      renewJoinLink: ({ params }) =>
        owner.pipe(
          Effect.flatMap((userId) => projects.renewLink(params.id, userId)),
          Effect.flatMap(shownOne),
          storeAway
        )
    })
  })
)
