import { Effect, Layer, Predicate } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { type HttpApi, HttpApiClient } from "effect/http-api"
import { type Client, Connection } from "#src/cli/Connection.ts"
import { publish } from "#src/Publication.ts"
import type { PublishedApi } from "#src/PublishedApi.ts"
import type { Room } from "#src/Room.ts"
import { NotesRoomApi } from "./Note.ts"

const makeNotes = HttpApiClient.make(NotesRoomApi)
type NotesClient = Effect.Success<typeof makeNotes>["notes"]

/** The part of the client for a room that is not in `src/Rooms.ts`; theirs are in the type of the client. */
export const notesOf = (client: Client): NotesClient => {
  if (!Predicate.hasProperty(client, "notes")) throw new TypeError("the client has no notes")
  return client.notes as NotesClient
}

const hasPublished = (api: HttpApi.Top): api is HttpApi.Top & typeof PublishedApi => "groups" in api

/** The connection of the command line to a server that runs other rooms than the published ones. */
export const connectionTo = (rooms: ReadonlyArray<Room>, url: string, key: string) =>
  Layer.effect(
    Connection,
    Effect.gen(function* () {
      const api = publish(rooms)
      if (!hasPublished(api)) return yield* Effect.die("the rooms publish no API")
      const client = yield* HttpApiClient.make(api, {
        baseUrl: url,
        transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(key))
      })
      return {
        target: Effect.succeed({ url, key }),
        ask: (request) => Effect.orDie(request(client)),
        askOf: () => (request) => Effect.orDie(request(client))
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
