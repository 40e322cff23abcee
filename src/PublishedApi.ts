import { HttpApi, OpenApi } from "effect/http-api"
import { describeQuery } from "#schemas/core/DescribeQuery.ts"
import type { Room } from "./Room.ts"
import { rooms } from "./Rooms.ts"

const description = `One self-hosted server for AI products and websites.

Every endpoint under \`/api/v1\` takes \`Authorization: Bearer <API_KEY>\`. Answers carry \`X-Request-Id\` and, where a
key was used, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\` (seconds); a refusal adds
\`Retry-After\`. Unknown query parameters are ignored, known and invalid ones are 400. Unknown paths are 404, wrong
methods 405 with \`Allow\`, both with the plain error body \`{"error": "…"}\`.`

/** The endpoints of rooms: first those of the pipeline, then those that are served beside it. */
export const publish = (list: ReadonlyArray<Pick<Room, "api" | "rawApi">>): HttpApi.Top => {
  const apis: ReadonlyArray<HttpApi.Constraint> = [
    HttpApi.make("signalbox"),
    ...list.map(({ api }) => api),
    ...list.map(({ rawApi }) => rawApi)
  ]
  const all = apis.filter(HttpApi.isHttpApi).reduce((sum, api) => sum.addHttpApi(api))
  return all.annotateMerge(
    OpenApi.annotations({ title: "Signalbox", version: "1", description, transform: describeQuery(all) })
  )
}

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
