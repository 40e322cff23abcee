import { Predicate } from "effect"
import { HttpApi } from "effect/http-api"
import { AccountApi } from "#schemas/accounts/AccountApi.ts"
import { FilesRawApi } from "#schemas/files/FilesRawApi.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { type Document, documentOf } from "#src/docs/api/Operations.ts"
import { documentRoute } from "#src/docs/page/ReferencePage.ts"
import { publish } from "#src/Publication.ts"

/** The document of this room, for clients that know no other. Source: contract/files#access. */
export const roomDocumentPath = "/api/openapi.json"

const none = HttpApi.make("signalbox")

/** The accounts' part of the room's document. */
const accounts = new Map([
  ["/api/v1/health", "get"],
  ["/api/v1/stats", "get"],
  ["/api/v1/users", "get"]
])

/** The names of the schemas that a part of a document refers to, and of those that these refer to. */
const referred = (part: unknown, schemas: Document["components"]["schemas"], names: Set<string>): void => {
  if (Array.isArray(part)) for (const item of part) referred(item, schemas, names)
  if (!Predicate.isObject(part)) return
  for (const [key, value] of Object.entries(part)) {
    const name = key === "$ref" && Predicate.isString(value) ? value.split("/").at(-1) : undefined
    if (name === undefined) referred(value, schemas, names)
    else if (!names.has(name)) {
      names.add(name)
      referred(schemas[name], schemas, names)
    }
  }
}

/** All of the room, with health, stats and users of the accounts. */
export const roomDocument = (): Document => {
  const all = documentOf(
    publish([
      { api: none.add(AccountApi), rawApi: none },
      { api: FilesRoomApi, rawApi: FilesRawApi }
    ])
  )
  const paths = Object.fromEntries(
    Object.entries(all.paths).flatMap(([path, methods]) => {
      if (!path.startsWith("/api/v1/")) return [[path, methods]]
      const kept = accounts.get(path)
      return [[path, Object.fromEntries(Object.entries(methods).filter(([method]) => method === kept))]]
    })
  )
  const names = new Set<string>()
  referred(paths, all.components.schemas, names)
  const schemas = Object.fromEntries(
    Object.entries(all.components.schemas).filter(([name]) => names.has(name))
  )
  return { ...all, paths, components: { ...all.components, schemas } }
}

export const roomDocumentRoute = documentRoute(roomDocumentPath, roomDocument)
