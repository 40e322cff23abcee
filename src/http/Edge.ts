import { Cause, type Context, Effect, Metric } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  bodyOf,
  type ErrorFormat,
  MethodNotAllowed,
  NotFound,
  type Problem,
  ServerError
} from "#schemas/core/Problem.ts"
import * as Cors from "./Cors.ts"
import { faultText, logFault } from "./ErrorBoundary.ts"
import type { KnownPaths } from "./KnownPaths.ts"
import { loggedPath } from "./LoggedPath.ts"
import { RequestId, requestIdOf } from "./RequestId.ts"
import { notFoundPage } from "#src/docs/page/ReferencePage.ts"

/**
 * The steps of every request to an ordinary endpoint, on either engine: its id in and out, CORS, 404 in the plain
 * form, 405 in that of the path, 500 with nothing of the cause, a log line and two metrics.
 */
interface EdgeOptions {
  readonly known: KnownPaths
  /** CORS_ORIGINS */
  readonly corsOrigins: ReadonlyArray<string>
}

/** One for each method and status: a metric works out once which series its attributes mean. */
const requests = new Map<string, Metric.Counter<number>>()

const requestsOf = (method: string, status: number): Metric.Counter<number> => {
  const name = `${method} ${status}`
  const known = requests.get(name)
  if (known !== undefined) return known
  const counter = Metric.counter("signalbox_http_requests_total", {
    description: "Answers of ordinary endpoints, by method and status",
    incremental: true,
    attributes: { method, status: String(status) }
  })
  requests.set(name, counter)
  return counter
}

const seconds = Metric.histogram("signalbox_http_request_seconds", {
  description: "From the request's head to the answer's",
  boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
})

/** Methods that metrics name; anything else a caller makes up is one label. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/** Paths mean what they say: no case folding, no forgiven slashes, as the hot routes have it. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  /** as long as a request's head may be: how long an id can be is each endpoint's to say, with the field's name */
  maxParamLength: 16 * 1024
}

export const layer = (options: EdgeOptions) => {
  const cors = Cors.make(options.corsOrigins)
  const { headers, text } = notFoundPage()
  const nothingHere = HttpServerResponse.text(text, { status: 404, headers })
  return HttpRouter.middleware(
    (httpEffect) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const startedMillis = performance.now()
        const id = requestIdOf(request.headers["x-request-id"])
        const preflight = cors.preflight(request)
        const answered =
          preflight !== undefined
            ? Effect.succeed(preflight)
            : options.known.isMistakable(pathOf(request.url))
              ? Effect.succeed(nothingThere)
              : answer(httpEffect, request, options.known)
        const millis = () => performance.now() - startedMillis
        const response = yield* answered.pipe(
          Effect.map((response) =>
            isForPerson(response.status, request.method, request.headers["accept"]) && !isPage(response)
              ? nothingHere
              : response
          ),
          Effect.tap(({ status }) => tellAnswer(request.method, status, millis())),
          Effect.provideService(RequestId, id),
          Effect.annotateLogs({
            requestId: id,
            method: request.method,
            path: loggedPath(pathOf(request.url))
          })
        )
        return HttpServerResponse.setHeaders(cors.answer(request, response), {
          "x-request-id": id,
          // A browser must not guess another type than the declared one.
          "x-content-type-options": "nosniff",
          // RFC 9110, 15.5.2: a 401 names the way to authenticate.
          ...(response.status === 401 ? { "www-authenticate": "Bearer" } : {})
        })
      }),
    { global: true }
  )
}

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const answer = <E, R>(httpEffect: Effect.Effect<Response, E, R>, request: Request, known: KnownPaths) =>
  Effect.catchCause(httpEffect, (cause): Effect.Effect<Response, E> => {
    const failure = cause.reasons.find(Cause.isFailReason)
    if (failure !== undefined && isRouteNotFound(failure.error))
      return Effect.succeed(notFound(request, known))
    // The caller has gone, or the server stops: there is no recipient.
    if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
    return Effect.andThen(
      logFault(cause),
      Effect.map(faultText, (text) => answerOf(ServerError.of(text), "plain"))
    )
  })

/** Nothing is at an address to which a browser goes: it says that it wants HTML, as programs and scripts of pages do not. */
export const isForPerson = (status: number, method: string, accept: string | undefined): boolean =>
  status === 404 && method === "GET" && accept?.includes("text/html") === true

/** It says in words of its own that nothing is there. */
const isPage = ({ headers }: Response): boolean => headers["content-type"]?.startsWith("text/html") === true

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

const notFound = (request: Request, known: KnownPaths): Response => {
  const there = known.at(pathOf(request.url))
  // The path may be known and the method right, and still no route took it: a parameter was too long or not UTF-8.
  if (there === undefined || there.allow.split(", ").includes(request.method)) return nothingThere
  return HttpServerResponse.setHeader(
    answerOf(MethodNotAllowed.of("Method not allowed"), there.errors),
    "allow",
    there.allow
  )
}

const answerOf = (problem: Problem, format: ErrorFormat): Response =>
  HttpServerResponse.text(bodyOf(problem, format), {
    status: problem.status,
    contentType: "application/json"
  })

const nothingThere = answerOf(NotFound.of("Not found"), "plain")

const pathOf = (url: string): string => url.split("?", 1)[0] ?? url

/** One line a request is for finding out: it is there with LOG_LEVEL=debug. */
const logAnswer = (status: number, millis: number) =>
  Effect.annotateLogs(Effect.logDebug("Answered"), { status, millis: Math.round(millis * 10) / 10 })

/** The log line and the metrics of an answer, of raw routes too. */
export const tellAnswer = (method: string, status: number, millis: number): Effect.Effect<void> =>
  Effect.andThen(logAnswer(status, millis), measure(method, status, millis))

const measure = (method: string, status: number, millis: number) =>
  Effect.map(Effect.context<never>(), (context) => measureNow(method, status, millis, context))

/** As `tellAnswer`, without a fiber and without the log line. */
export const measureNow = (
  method: string,
  status: number,
  millis: number,
  context: Context.Context<never>
): void => {
  requestsOf(methods.has(method) ? method : "other", status).updateUnsafe(1, context)
  seconds.updateUnsafe(millis / 1000, context)
}
