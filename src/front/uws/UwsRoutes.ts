import type { UwsApp, UwsRequest, UwsResponse } from "./Addon.ts"
import type { FrontAnswer } from "../FrontAnswer.ts"
import { failuresOf, jsonType, notFound } from "../FrontAnswer.ts"
import type { FrontState } from "./FrontState.ts"
import { type HotContext, refusalOf } from "../HotAnswer.ts"
import type { HotPath, HotRoute } from "../HotRoute.ts"
import { readFullHead, readHotHead, wantedHeaders } from "./HotHead.ts"
import { afterDispatch, answerAndClose } from "./LastAnswer.ts"
import { saysClose } from "../RequestHead.ts"
import { endWithoutBody } from "./ResponseHead.ts"
import { statusLine } from "../StatusLine.ts"
import type { RawMatch } from "../RawPaths.ts"
import { UwsHotExchange } from "./UwsHotExchange.ts"
import { UwsRawExchange } from "./UwsRawExchange.ts"

/** Hot routes as native handlers, which uWebSockets.js matches before any pattern. */
export const register = (
  app: UwsApp,
  routes: ReadonlyArray<HotRoute>,
  context: HotContext,
  state: FrontState
): void => {
  for (const route of routes) {
    const wanted = wantedHeaders(route.headers)
    const serve = (response: UwsResponse, request: UwsRequest): void => {
      const head = readHotHead(request, wanted)
      if (head.isAmbiguous) answerAndClose(response, request, failuresOf(route.errors).badRequest)
      else new UwsHotExchange(route, response, request, head, context, state).begin()
    }
    if (route.method === "GET") app.get(route.path, serve)
    else app.post(route.path, serve)
  }
}

/**
 * The catch-all's answer to a request to a hot path that no native handler took (HEAD, OPTIONS, another method, or a
 * variant of the path), or to a raw path. False where the path is for neither.
 */
export const answerOwnPath = (
  path: string,
  method: string,
  response: UwsResponse,
  request: UwsRequest,
  context: HotContext,
  state: FrontState
): boolean => {
  const { paths } = context
  const route = paths.find(method, path)
  const there = paths.at(path)
  const raw = there === undefined ? paths.raw(path) : undefined
  if (raw !== undefined) {
    if (raw.there.isShared && raw.there.find(method) === undefined) return false
    answerRaw(raw, method, response, request, context, state)
    return true
  }
  if (there === undefined && !paths.isVariant(path)) return false
  const head = readHotHead(request, wantedHeaders(route?.headers ?? []))
  // A body that has no business here would have to be read to its end before anything else.
  const isOutOfPlace = route === undefined && (head.isChunked || hasLength(head.contentLength))
  if (head.isAmbiguous || (isOutOfPlace && method === "OPTIONS"))
    answerAndClose(response, request, failuresOf(there?.errors).badRequest)
  else if (route !== undefined) new UwsHotExchange(route, response, request, head, context, state).begin()
  else if (there === undefined) answer(response, request, notFound, [], state)
  else answerThere(there, paths.allow(path) ?? "", method, response, request, context, state)
  return true
}

const answerRaw = (
  { params, there }: RawMatch,
  method: string,
  response: UwsResponse,
  request: UwsRequest,
  context: HotContext,
  state: FrontState
): void => {
  const route = there.find(method)
  const full = readFullHead(request)
  const { head } = full
  const isOutOfPlace = route === undefined && (head.isChunked || hasLength(head.contentLength))
  if (head.isAmbiguous || (isOutOfPlace && method === "OPTIONS"))
    answerAndClose(response, request, failuresOf(there.errors).badRequest)
  else if (route !== undefined)
    new UwsRawExchange({ route, params }, response, request, full, context, state).begin()
  else answerThere(there, there.allow, method, response, request, context, state)
}

const answerThere = (
  there: HotPath,
  allow: string,
  method: string,
  response: UwsResponse,
  request: UwsRequest,
  { cors }: HotContext,
  state: FrontState
): void => {
  const origin = request.getHeader("origin")
  if (method === "OPTIONS") {
    const wanted = request.getHeader("access-control-request-headers")
    response.writeStatus(statusLine(204))
    for (const [name, value] of cors.preflight(there.cors, origin, wanted, allow))
      response.writeHeader(name, value)
    if (state.isDraining) response.writeHeader("Connection", "close")
    endWithoutBody(response, undefined)
  } else {
    const [refusal, headers] = refusalOf(there, method, allow)
    answer(response, request, refusal, [...headers, ...cors.answer(there.cors, origin)], state)
  }
}

/** One of the front's own answers: at once, or where nothing behind the request may be served (`LastAnswer.ts`), soon. */
export const answer = (
  response: UwsResponse,
  request: UwsRequest,
  refusal: FrontAnswer,
  headers: ReadonlyArray<readonly [string, string]>,
  state: FrontState
): void => {
  const isHead = request.getCaseSensitiveMethod() === "HEAD"
  const isLast = isChunked(request) || saysClose(request.getHeader("connection"))
  // A body that is still to come would switch the idle timer off once it has ended.
  const isClosing = isLast || state.isDraining || hasBody(request)
  const write = (): void => {
    response.writeStatus(statusLine(refusal.status)).writeHeader(...jsonType)
    for (const [name, value] of headers) response.writeHeader(name, value)
    if (!isHead) response.end(refusal.body, isClosing)
    else {
      if (isClosing) response.writeHeader("Connection", "close")
      if (isLast) response.pause()
      endWithoutBody(response, String(Buffer.byteLength(refusal.body)))
    }
  }
  if (isLast) answerLater(response, write, state)
  else write()
}

const answerLater = (response: UwsResponse, write: () => void, state: FrontState): void => {
  let isAborted = false
  state.inFlight++
  response.onAborted(() => {
    isAborted = true
    state.finished()
  })
  afterDispatch(() => {
    if (isAborted) return
    response.cork(write)
    state.finished()
  })
}

const isChunked = (request: UwsRequest): boolean => request.getHeader("transfer-encoding") !== ""

export const hasBody = (request: UwsRequest): boolean =>
  isChunked(request) || hasLength(request.getHeader("content-length"))

const hasLength = (contentLength: string): boolean => contentLength !== "" && contentLength !== "0"
