import { Effect, Semaphore } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { importLinesMax } from "#schemas/analytics/ImportApi.ts"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { bodyOf } from "#src/http/BodyOf.ts"
import type { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { importLimits, type ImportUnknown } from "./ImportsRepository.ts"
import { type ImportGap, Imports } from "./Imports.ts"
import { Sites } from "../sites/Sites.ts"
import {
  BadRequest,
  PayloadTooLarge,
  RateLimited,
  ServiceUnavailable,
  StorageFull
} from "#schemas/core/Problem.ts"

const newline = 0x0a

/** Lines of NDJSON that are not empty, as views into the body. */
const linesOf = (body: Uint8Array): ReadonlyArray<Uint8Array> => {
  const lines: Array<Uint8Array> = []
  for (let from = 0; from < body.length;) {
    const found = body.indexOf(newline, from)
    const to = found < 0 ? body.length : found
    if (to > from) lines.push(body.subarray(from, to))
    from = to + 1
  }
  return lines
}

const problems = {
  ImportGap: ({ next }: ImportGap) =>
    Effect.fail(BadRequest.of(`offset: the import is at ${next}; send what follows there`)),
  ImportUnknown: ({ name }: ImportUnknown) =>
    Effect.fail(BadRequest.of(`continues: there is no import ${JSON.stringify(name)}`)),
  TooManyImports: () => Effect.fail(BadRequest.of(`import: at most ${importLimits.namesPerSite} of a site`)),
  LogFull: ({ retryAfterSeconds }: LogFull) =>
    Effect.fail(
      RateLimited.of("Too many imported events wait for the store; go on with this part later", {
        retryAfterSeconds
      })
    ),
  LogUnavailable: ({ reason }: LogUnavailable): Effect.Effect<never, StorageFull | ServiceUnavailable> =>
    reason === "disk_full"
      ? Effect.fail(StorageFull.of("The disk is full; go on with this part later"))
      : Effect.fail(ServiceUnavailable.of("The event log is away; try again later"))
}

/** Parts whose bodies are in memory at once; those of further ones are not read yet. */
const partsAtOnce = 4

export const layer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "import",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const imports = yield* Imports
    const { limits } = yield* AppConfig
    const room = yield* Semaphore.make(partsAtOnce)
    const ownSite = (id: string) => Effect.flatMap(CurrentKey, ({ ownerId }) => sites.find(id, ownerId))
    const taken = handlers.handleRaw("importEvents", ({ params, query, request }) =>
      Effect.gen(function* () {
        const site = yield* ownSite(params.id)
        return yield* room.withPermits(1)(
          Effect.gen(function* () {
            const lines = linesOf(yield* bodyOf(request, limits.collectBodyBytes))
            if (lines.length > importLinesMax) {
              return yield* PayloadTooLarge.of(`body: at most ${importLinesMax} lines`)
            }
            return yield* imports.take(site, {
              name: query.import,
              continues: query.continues,
              offset: query.offset,
              isLast: query.last === "true",
              lines
            })
          })
        )
      }).pipe(Effect.catchTags(problems))
    )
    return taken.handle("listImports", ({ params }) =>
      Effect.flatMap(ownSite(params.id), (site) =>
        Effect.map(imports.list(site), (list) => ({ imports: list }))
      )
    )
  })
)
