import { Effect } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { HotReply, HotRequest, HotRoute } from "#src/front/HotRoute.ts"
import { Ingest } from "./Ingest.ts"
import { badSecret, type IngestAnswer } from "./IngestAnswer.ts"

/** In the order in which they are believed, of a trusted proxy. Source: contract/analytics#countries. */
const countryHeaders = [
  "cf-ipcountry",
  "cloudfront-viewer-country",
  "x-vercel-ip-country",
  "fastly-geo-country"
]

/** The endpoints that take events, served beside the Effect pipeline. */
export const ingestRoutes: Effect.Effect<ReadonlyArray<HotRoute>, never, Ingest | AppConfig> = Effect.gen(
  function* () {
    const ingest = yield* Ingest
    const { limits } = yield* AppConfig
    const event: HotRoute = {
      method: "POST",
      path: "/api/event",
      maxBodyBytes: limits.eventBodyBytes,
      headers: ["user-agent", ...countryHeaders],
      cors: "open",
      handle: (request, body, reply) =>
        ingest.event(
          body,
          {
            address: request.remoteAddress,
            userAgent: request.header("user-agent"),
            countryCode: request.isProxied ? countryOf(request) : ""
          },
          (answer) => send(reply, answer)
        )
    }
    const collect: HotRoute = {
      method: "POST",
      path: "/api/v1/collect",
      maxBodyBytes: limits.collectBodyBytes,
      headers: ["authorization"],
      cors: "configured",
      admit: (request) => {
        const refusal = ingest.refusal()
        if (refusal !== undefined) return { _tag: "Refused", answer: (reply) => send(reply, refusal) }
        const userId = ingest.ownerOf(request.header("authorization"))
        return userId === undefined
          ? { _tag: "Refused", answer: (reply) => send(reply, badSecret) }
          : { _tag: "Known", userId }
      },
      handle: (request, body, reply) =>
        ingest.collect(body, request.header("authorization"), (answer) => send(reply, answer))
    }
    return [event, collect]
  }
)

const countryOf = (request: HotRequest): string => {
  for (const name of countryHeaders) {
    const code = request.header(name)
    if (code !== "") return code
  }
  return ""
}

const send = (reply: HotReply, { body, headers, status }: IngestAnswer): void =>
  body === "" ? reply.send(status, headers) : reply.send(status, headers, body)
