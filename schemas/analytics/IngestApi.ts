import {
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiMiddleware,
  HttpApiSchema,
  HttpApiSecurity,
  OpenApi
} from "effect/http-api"
import { Schema } from "effect"
import { openStruct } from "../core/OpenStruct.ts"
import { BrowserEvent } from "./BrowserEvent.ts"
import { CollectAnswer, CollectEvent } from "./CollectEvent.ts"
import { eventLimits } from "./EventLimits.ts"
import {
  BadRequest,
  NotFound,
  PayloadTooLarge,
  RateLimited,
  ServiceUnavailable,
  StorageFull,
  Unauthorized
} from "../core/Problem.ts"

/** Unknown members are ignored here: fields of a newer script or library must not cost the event. */
const OpenBrowserEvent = openStruct(BrowserEvent.fields).annotate({ identifier: "BrowserEvent" })
const OpenCollectEvent = openStruct(CollectEvent.fields).annotate({ identifier: "CollectEvent" })

const failures = [
  PayloadTooLarge.plain,
  RateLimited.plain,
  ServiceUnavailable.plain,
  StorageFull.plain
] as const

/** Describes the credential of `collect`; the hot route checks it itself. */
export class SiteSecret extends HttpApiMiddleware.Service<SiteSecret>()("signalbox/analytics/SiteSecret", {
  security: {
    siteSecret: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
      HttpApiSecurity.annotateMerge(
        OpenApi.annotations({
          description: "`Authorization: Bearer <SITE_SECRET>` (`ssk_`): writes events of one site"
        })
      )
    )
  },
  error: Unauthorized.plain
}) {}

/**
 * Ingest, as the document describes it. These endpoints are served beside the Effect pipeline, by
 * src/analytics/ingest/IngestRoutes.ts with hand-tuned decoders; a property test holds them to these schemas.
 * Source: contract/analytics#collect, contract/analytics#browser-events.
 */
export class IngestApi extends HttpApiGroup.make("ingest")
  .add(
    HttpApiEndpoint.post("browserEvent", "/api/event", {
      payload: OpenBrowserEvent,
      success: HttpApiSchema.Empty(202),
      error: [BadRequest.plain, NotFound.plain, ...failures]
    })
      .annotate(OpenApi.Summary, "Record what a browser saw")
      .annotate(
        OpenApi.Description,
        "Open to any origin; any Content-Type. 202 without a body once the event is on disk, also for hits that are " +
          "ignored (bots, pages of another host)."
      ),
    HttpApiEndpoint.post("collect", "/api/v1/collect", {
      payload: Schema.Union([
        OpenCollectEvent,
        Schema.Array(OpenCollectEvent).check(
          Schema.isBetweenLength(1, eventLimits.collectEvents, {
            expected: `1 to ${eventLimits.collectEvents} events`
          })
        )
      ]),
      success: CollectAnswer.pipe(HttpApiSchema.status(202)),
      error: [BadRequest.plain, ...failures]
    })
      .middleware(SiteSecret)
      .annotate(OpenApi.Summary, "Record what a server saw")
      .annotate(
        OpenApi.Description,
        "One event or an array of at most 100. A repeated `id` within 24 hours is not stored again. " +
          "202 when at least one event is good; 400 when every result carries an `error`."
      )
  )
  .annotateMerge(OpenApi.annotations({ title: "Ingest", description: "Events of browsers and servers." })) {}
