import type { UwsApp, UwsRequest, UwsResponse } from "./Addon.ts"
import type { FrontAnswer } from "./FrontAnswer.ts"
import { failuresOf, jsonType, notFound } from "./FrontAnswer.ts"
import type { FrontState } from "./FrontState.ts"
import { type HotContext, refusalOf } from "./HotAnswer.ts"
import type { HotRoute } from "./HotRoute.ts"
import { endWithoutBody } from "./ResponseHead.ts"
import { statusLine } from "./StatusLine.ts"
import { UwsHotExchange } from "./UwsHotExchange.ts"

/** Hot routes as native handlers, which uWebSockets.js matches before any pattern. */
export const register = (
  app: UwsApp,
  routes: ReadonlyArray<HotRoute>,
  context: HotContext,
  state: FrontState
): void => {
  for (const route of routes) {
    const serve = (response: UwsResponse, request: UwsRequest): void => {
      const coding = request.getHeader("transfer-encoding")
      // Taken for chunked by uWebSockets.js, whatever it says (RFC 9112 6.3).
      if (coding !== "" && coding.toLowerCase() !== "chunked")
        answer(response, request, failuresOf(route.errors).badRequest, [], state)
      else new UwsHotExchange(route, response, request, context, state).begin()
    }
    if (route.method === "GET") app.get(route.path, serve)
    else app.post(route.path, serve)
  }
}

/**
 * What the catch-all does with a request to a hot path that no native handler took: HEAD, OPTIONS, another method, or
 * a variant of the path. False where the path has nothing to do with hot routes.
 */
export const answerHotPath = (
  path: string,
  method: string,
  response: UwsResponse,
  request: UwsRequest,
  context: HotContext,
  state: FrontState
): boolean => {
  const { paths, cors } = context
  const route = paths.find(method, path)
  if (route !== undefined) {
    new UwsHotExchange(route, response, request, context, state).begin()
    return true
  }
  const there = paths.at(path)
  if (there === undefined) {
    if (!paths.isVariant(path)) return false
    answer(response, request, notFound, [], state)
    return true
  }
  const allow = paths.allow(path) ?? ""
  const origin = request.getHeader("origin")
  if (method === "OPTIONS") {
    const wanted = request.getHeader("access-control-request-headers")
    response.writeStatus(statusLine(204))
    for (const [name, value] of cors.preflight(there.cors, origin, wanted, allow))
      response.writeHeader(name, value)
    if (closes(request, state)) response.writeHeader("Connection", "close")
    endWithoutBody(response, undefined)
  } else {
    const [refusal, headers] = refusalOf(there, method, allow)
    answer(response, request, refusal, [...headers, ...cors.answer(there.cors, origin)], state)
  }
  return true
}

/** One of the front's own answers, at once. */
export const answer = (
  response: UwsResponse,
  request: UwsRequest,
  { status, body }: FrontAnswer,
  headers: ReadonlyArray<readonly [string, string]>,
  state: FrontState
): void => {
  response.writeStatus(statusLine(status)).writeHeader(...jsonType)
  for (const [name, value] of headers) response.writeHeader(name, value)
  const isClosing = closes(request, state)
  if (request.getCaseSensitiveMethod() !== "HEAD") response.end(body, isClosing)
  else {
    if (isClosing) response.writeHeader("Connection", "close")
    endWithoutBody(response, String(Buffer.byteLength(body)))
  }
}

/** A body that is still to come would switch the idle timer off once it has ended. */
const closes = (request: UwsRequest, state: FrontState): boolean => state.isDraining || hasBody(request)

export const hasBody = (request: UwsRequest): boolean =>
  request.getHeader("transfer-encoding") !== "" || (request.getHeader("content-length") || "0") !== "0"
