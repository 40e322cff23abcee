import { Cause, Effect, FiberSet } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { bodyOf, headersOf, Problem, ServerError, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { Header, Headers } from "#src/front/HeaderBlock.ts"
import type {
  ByteSource,
  FileRange,
  FileSent,
  RawBody,
  RawReply,
  RawRequest,
  RawRoute
} from "#src/front/RawRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { notFoundPage } from "#src/docs/page/ReferencePage.ts"
import { isForPerson, measureNow, tellAnswer } from "#src/http/Edge.ts"
import { faultText, logFault } from "#src/http/ErrorBoundary.ts"
import { loggedPath } from "#src/http/LoggedPath.ts"
import { RequestId, requestIdOf } from "#src/http/RequestId.ts"
import { withRequestSpan } from "#src/http/RequestSpan.ts"
import { type Access, accessOf, Admission, type Annotated, entering } from "./Admission.ts"
import { KeyWatch } from "./KeyWatch.ts"
import { makeSessionCookie } from "./sessions/SessionCookie.ts"

const nothingHere = notFoundPage()

/** The work behind an endpoint of a group that is served by a raw route. */
export interface KeyedRoute extends Pick<RawRoute, "isShared" | "maxBodyBytes"> {
  /** Answers by the exchange, or fails with the answer. It goes on where the client leaves: its pulls then end as `gone`. */
  readonly handle: (exchange: KeyedExchange, key: Principal) => Effect.Effect<void, Problem>
  /**
   * The way to answer from memory alone, at once and in the same way as `handle` would, where that is possible. It is
   * called before the request counts, and its answer, which must not fail, where the key is let in.
   */
  readonly atHand?: (exchange: KeyedExchange, key: Principal) => (() => void) | undefined
}

/** A browser must not guess another type than the declared one. */
const noSniffing: Header = ["X-Content-Type-Options", "nosniff"]

const nothing = (): void => undefined
const unwatched = () => nothing

/** One request of a keyed route, and its one answer, which has the headers of ordinary endpoints. */
export class KeyedExchange {
  readonly request: RawRequest
  readonly body: RawBody
  readonly requestId: string
  /** on every answer */
  readonly headers: Array<Header>
  /** of the answer; 0 until there is one */
  status = 0
  /** answers of 400 and more have no body */
  isBodiless = false
  /** receives the status of the answer */
  onStatus: (status: number) => void = nothing
  /** Calls back when the key ends, once it is known; returns the way to stop that. Source: contract/accounts#keys. */
  watch: (onEnd: () => void) => () => void = unwatched
  readonly #reply: RawReply

  constructor(request: RawRequest, body: RawBody, reply: RawReply) {
    this.request = request
    this.body = body
    this.requestId = requestIdOf(request.header("x-request-id"))
    this.headers = [["X-Request-Id", this.requestId], noSniffing]
    this.#reply = reply
  }

  /** Called once, where the client leaves before the answer is complete. */
  onLeave(listener: () => void): void {
    this.#reply.onAbort(listener)
  }

  /** Adds a header to the answer, or replaces one that every answer has. */
  setHeader(name: string, value: string): void {
    const at = this.headers.findIndex(([known]) => known.toLowerCase() === name.toLowerCase())
    this.headers.splice(at < 0 ? this.headers.length : at, at < 0 ? 0 : 1, [name, value])
  }

  /** The answer that `send` gives says that its connection is not used again. */
  lastOfConnection(): void {
    this.#reply.lastOfConnection()
  }

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    this.#answers(status)
    this.#reply.send(status, [...this.headers, ...headers], body)
  }

  sendJson(status: number, value: unknown): void {
    this.send(status, [["Content-Type", "application/json"]], JSON.stringify(value))
  }

  /** The connection is cut where the key ends before the answer does. */
  sendFile(status: number, headers: Headers, file: FileRange, sent?: FileSent): void {
    this.#answers(status)
    this.#reply.sendFile(status, [...this.headers, ...headers], file, this.#cutWithKey(sent))
  }

  /** As `sendFile`, of bytes that come from anywhere. */
  sendSource(status: number, headers: Headers, source: ByteSource, sent?: FileSent): void {
    this.#answers(status)
    this.#reply.sendSource(status, [...this.headers, ...headers], source, this.#cutWithKey(sent))
  }

  /** A person gets a page of a 404. Source: contract/http#errors. */
  fail(problem: Problem): void {
    const { method } = this.request
    if (this.isBodiless) return this.send(problem.status, Object.entries(headersOf(problem)))
    if (isForPerson(problem.status, method, this.request.header("accept"))) {
      const { headers, text } = nothingHere
      return this.send(problem.status, Object.entries(headers), text)
    }
    const headers = Object.entries(headersOf(problem))
    this.send(problem.status, [["Content-Type", "application/json"], ...headers], bodyOf(problem, "plain"))
  }

  #cutWithKey(sent: FileSent | undefined): FileSent {
    const unwatch = this.watch(() => this.#reply.cut())
    return (bytes, isWhole) => {
      unwatch()
      sent?.(bytes, isWhole)
    }
  }

  #answers(status: number): void {
    this.status = status
    this.onStatus(status)
  }
}

interface Endpoint extends Annotated {
  readonly method: string
  readonly path: string
}

/** A group of the API, as far as its raw routes go by it. */
interface Group extends Annotated {
  readonly endpoints: Readonly<Record<string, Endpoint>>
}

/**
 * Raw routes of a group's endpoints, at their methods and paths. They let in callers as ordinary endpoints do, by the same
 * annotations, but before any of the body is read, and answer errors in the plain form.
 */
export const keyedRoutes = Effect.fnUntraced(function* <const G extends Group>(
  group: G,
  routes: { readonly [Name in keyof G["endpoints"]]: KeyedRoute }
) {
  const serve = yield* keyedServing
  const byName: Readonly<Record<string, KeyedRoute>> = routes
  return Object.entries(group.endpoints).flatMap(([name, endpoint]): ReadonlyArray<RawRoute> => {
    const route = byName[name]
    if (route === undefined) return []
    const access = accessOf(endpoint, group)
    return [
      {
        methods: [endpoint.method],
        path: endpoint.path,
        maxBodyBytes: route.maxBodyBytes,
        isShared: route.isShared === true,
        cors: "configured",
        handle: serve(access, endpoint.path, route.handle, route.atHand)
      }
    ]
  })
})

type Handle = KeyedRoute["handle"]
type AtHand = KeyedRoute["atHand"]

/** Makes the handlers of raw routes: a caller is let in, the request is handled, and its answer is told of. */
export const keyedServing = Effect.gen(function* () {
  const admission = yield* Admission
  const cookie = yield* makeSessionCookie
  const keys = yield* KeyWatch
  const serve = yield* openServing

  const enter = Effect.fnUntraced(function* (exchange: KeyedExchange, access: Access, handle: Handle) {
    const { request } = exchange
    const clear = (): Effect.Effect<void> =>
      Effect.sync(() => {
        const cleared = cookie.clearing(request)
        if (cleared !== undefined) exchange.headers.push(["Set-Cookie", cleared])
      })
    const { headers, key, refusal } = yield* entering(
      admission,
      access,
      request.header("authorization"),
      request,
      () => request,
      clear
    )
    exchange.headers.push(...Object.entries(headers))
    exchange.onStatus = (status) => admission.record(key, status)
    exchange.watch = (onEnd) => keys.watch(key.id, onEnd)
    const handled = refusal === undefined ? handle(exchange, key) : Effect.fail(refusal)
    return yield* Effect.annotateLogs(handled, { keyId: key.keyId, userId: key.ownerId })
  })

  /** Whether the request was answered. */
  const answerAtHand = (exchange: KeyedExchange, access: Access, atHand: NonNullable<AtHand>): boolean => {
    const { request } = exchange
    exchange.isBodiless = access.bodiless === true
    let send: (() => void) | undefined
    const entry = admission.enterAtHand(request.header("authorization"), access, request, (key) => {
      send = atHand(exchange, key)
      return send !== undefined
    })
    if (entry === undefined || send === undefined) return false
    exchange.headers.push(...Object.entries(entry.headers))
    exchange.onStatus = (status) => admission.record(entry.key, status)
    if (entry.refusal === undefined) send()
    else exchange.fail(entry.refusal)
    return true
  }

  return (access: Access, route: string, handle: Handle, atHand?: AtHand): RawRoute["handle"] =>
    serve(
      route,
      (exchange) => {
        exchange.isBodiless = access.bodiless === true
        return enter(exchange, access, handle)
      },
      atHand && ((exchange) => answerAtHand(exchange, access, atHand))
    )
})

/** The same for requests that need no key: what they may is in their address. */
export const openServing = Effect.gen(function* () {
  const { logLevel, otelEndpoint } = yield* AppConfig
  const isTraced = otelEndpoint !== undefined
  /** Neither a span nor a line of the log is made of an answer: no fiber is needed for them. */
  const isQuiet = !isTraced && !["All", "Trace", "Debug"].includes(logLevel)
  const context = yield* Effect.context<never>()
  const run = yield* FiberSet.makeRuntime()
  return (
    route: string,
    handle: (exchange: KeyedExchange) => Effect.Effect<void, Problem>,
    /** whether it has answered, at once and from memory */
    answerAtHand?: (exchange: KeyedExchange) => boolean
  ): RawRoute["handle"] =>
    (request, body, reply) => {
      const startedMillis = performance.now()
      const { method, path } = request
      const exchange = new KeyedExchange(request, body, reply)
      if (isQuiet && answerAtHand?.(exchange) === true)
        return measureNow(method, exchange.status, performance.now() - startedMillis, context)
      const { requestId } = exchange
      const answered = Effect.suspend(() => handle(exchange)).pipe(
        Effect.catchCause((cause) => Effect.map(problemOf(cause), (problem) => exchange.fail(problem))),
        Effect.andThen(Effect.suspend(() => told(exchange, performance.now() - startedMillis))),
        Effect.provideService(RequestId, requestId),
        Effect.annotateLogs({ requestId, method, path: loggedPath(path) })
      )
      const requested = { method, route, traceparent: isTraced ? request.header("traceparent") : "" }
      run(isTraced ? withRequestSpan(answered, exchange, requested) : answered)
    }
})

/** Nothing is told of a request whose client has left before the answer. */
const told = ({ request, status }: KeyedExchange, millis: number): Effect.Effect<void> =>
  status === 0 ? Effect.void : tellAnswer(request.method, status, millis)

/** A fault of this server itself is logged, and answered 500; work that gave itself up is 503. */
const problemOf = (cause: Cause.Cause<Problem>): Effect.Effect<Problem> => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined) return Effect.succeed(failure)
  if (Cause.hasInterruptsOnly(cause))
    return Effect.succeed(ServiceUnavailable.of("The request was interrupted; try again"))
  return Effect.andThen(
    logFault(cause),
    Effect.map(faultText, (text) => ServerError.of(text))
  )
}
