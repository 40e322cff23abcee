import { Effect, Layer } from "effect"
import { Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import type { RoomServer } from "#src/Room.ts"
import * as Notes from "./Notes.ts"

export const server: RoomServer = {
  served: Layer.merge(
    Notes.layer,
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
