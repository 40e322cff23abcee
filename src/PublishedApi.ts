import { HttpApi } from "effect/http-api"
import { publish } from "./Publication.ts"
import { rooms } from "./Rooms.ts"

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never
type RoomRecord = (typeof rooms)[number]
type Groups = GroupsOf<RoomRecord["api"]> | GroupsOf<RoomRecord["rawApi"]>

/** A fold over a list loses the type that the list has. */
const isOfRooms = (api: HttpApi.Top): api is HttpApi.Top & HttpApi.HttpApi<"signalbox", Groups> =>
  HttpApi.isHttpApi(api)

const all = publish(rooms)
if (!isOfRooms(all)) throw new TypeError("the rooms publish no API")

/** The whole contract: `/openapi.json`, `/docs` and the typed client are made from it. */
export const PublishedApi: HttpApi.HttpApi<"signalbox", Groups> = all
