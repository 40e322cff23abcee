import { Effect, Predicate } from "effect"
import { HttpServer } from "effect/http"
import { AppConfig } from "./Config.ts"

/** How this server is reached, without a trailing slash: `BASE_URL`, else the address that it listens on. */
export const serverUrl = Effect.gen(function* () {
  const { baseUrl, host } = yield* AppConfig
  const { address } = yield* HttpServer.HttpServer
  if (baseUrl !== undefined) return baseUrl
  const port = Predicate.hasProperty(address, "port") ? address.port : undefined
  const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host
  return `http://${name}:${String(port)}`
})
