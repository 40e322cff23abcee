import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { SqlClient } from "effect/sql/SqlClient"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import type { RoomServer } from "#src/Room.ts"
import { NotesRoomApi } from "./NotesApi.ts"

const endpoints = HttpApiBuilder.layer(NotesRoomApi).pipe(
  Layer.provide(
    HttpApiBuilder.group(
      NotesRoomApi,
      "notes",
      Effect.fnUntraced(function* (handlers) {
        const sql = yield* SqlClient
        return handlers.handleAll({
          listNotes: () =>
            storeAway(
              Effect.flatMap(
                CurrentKey,
                ({ userId }) =>
                  sql<{
                    readonly id: string
                    readonly text: string
                  }>`SELECT id, text FROM notes WHERE user_id = ${userId}`
              )
            ).pipe(Effect.map((found) => ({ notes: found }))),
          createNote: ({ payload: { text } }) =>
            Effect.gen(function* () {
              const { userId } = yield* CurrentKey
              const id = `note_${crypto.randomUUID()}`
              yield* storeAway(sql`INSERT INTO notes ${sql.insert({ id, user_id: userId, text })}`)
              return { id, text }
            }),
          deleteNote: ({ params: { id } }) =>
            Effect.gen(function* () {
              const { userId } = yield* CurrentKey
              yield* storeAway(sql`DELETE FROM notes WHERE id = ${id} AND user_id = ${userId}`)
              return { deleted: true as const }
            })
        })
      })
    )
  )
)

export const server: RoomServer = {
  served: Layer.merge(
    endpoints,
    Layer.effectDiscard(
      Effect.flatMap(Readiness, ({ register }) =>
        register("notes", Effect.succeed({ ...up, detail: "kept" }))
      )
    )
  ),
  raw: RawRoutes.add(
    Effect.succeed([
      {
        method: "GET",
        path: "/notes.txt",
        cors: "configured",
        headers: [],
        maxBodyBytes: 0,
        handle: (_request, _body, reply) => reply.send(200, [["Content-Type", "text/plain"]], "raw")
      }
    ])
  ),
  paths: []
}
