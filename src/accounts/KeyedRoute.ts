import { Cause, Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { bodyOf, headersOf, Problem, ServerError } from "#schemas/core/Problem.ts"
import type { FileRange, RawBody, RawReply, RawRequest, RawRoute } from "#src/front/RawRoute.ts"
import { tellAnswer } from "#src/http/Edge.ts"
import { faultText, logFault } from "#src/http/ErrorBoundary.ts"
import { RequestId, requestIdOf } from "#src/http/RequestId.ts"
import { type Access, accessOf, Admission, type Annotated, entering } from "./Admission.ts"
import { KeyWatch } from "./KeyWatch.ts"
import { makeSessionCookie } from "./sessions/SessionCookie.ts"

type Header = readonly [name: string, value: string]

/** The work behind an endpoint of a group that is served by a raw route. */
export interface KeyedRoute extends Pick<RawRoute, "maxBodyBytes"> {
  /** Answers by the exchange, or fails with the answer. It goes on where the client leaves: its pulls then end as `gone`. */
  readonly handle: (exchange: KeyedExchange, key: Principal) => Effect.Effect<void, Problem>
}

/** One request of a keyed route, and its one answer, which has the headers of ordinary endpoints. */
export class KeyedExchange {
  readonly request: RawRequest
  readonly body: RawBody
  readonly requestId: string
  /** on every answer */
  readonly headers: Array<Header>
  /** of the answer; 0 until there is one */
  status = 0
  /** receives the status of the answer */
  onStatus: (status: number) => void = () => undefined
  readonly #reply: RawReply
  readonly #watch: (onEnd: () => void) => () => void

  constructor(request: RawRequest, body: RawBody, reply: RawReply, watch: (onEnd: () => void) => () => void) {
    this.request = request
    this.body = body
    this.requestId = requestIdOf(request.header("x-request-id"))
    this.headers = [
      ["X-Request-Id", this.requestId],
      ["X-Content-Type-Options", "nosniff"]
    ]
    this.#reply = reply
    this.#watch = watch
  }

  send(status: number, headers: ReadonlyArray<Header>, body?: string | Uint8Array): void {
    this.#answers(status)
    this.#reply.send(status, [...this.headers, ...headers], body)
  }

  sendJson(status: number, value: unknown): void {
    this.send(status, [["Content-Type", "application/json"]], JSON.stringify(value))
  }

  /** The connection is cut where the key ends before the answer does. Source: contract/accounts#keys. */
  sendFile(status: number, headers: ReadonlyArray<Header>, file: FileRange): void {
    this.#answers(status)
    const unwatch = this.#watch(() => this.#reply.cut())
    this.#reply.sendFile(status, [...this.headers, ...headers], file, unwatch)
  }

  fail(problem: Problem): void {
    const headers = Object.entries(headersOf(problem))
    this.send(problem.status, [["Content-Type", "application/json"], ...headers], bodyOf(problem, "plain"))
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
  const serve = yield* makeServe
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
        cors: "configured",
        handle: (request, body, reply) => serve({ route, access, key: undefined }, request, body, reply)
      }
    ]
  })
})

/** Serves one request: its caller is let in, it is handled, and its answer is told of. */
const makeServe = Effect.gen(function* () {
  const admission = yield* Admission
  const cookie = yield* makeSessionCookie
  const watch = yield* KeyWatch
  const run = Effect.runForkWith(yield* Effect.context<never>())

  const enter = Effect.fnUntraced(function* (exchange: KeyedExchange, entry: EntryPoint) {
    const { request } = exchange
    const clear = (): Effect.Effect<void> =>
      Effect.sync(() => {
        const cleared = cookie.clearing(request)
        if (cleared !== undefined) exchange.headers.push(["Set-Cookie", cleared])
      })
    const { headers, key, refusal } = yield* entering(
      admission,
      entry.access,
      request.header("authorization"),
      request,
      () => request,
      clear
    )
    exchange.headers.push(...Object.entries(headers))
    exchange.onStatus = (status) => admission.record(key, status)
    entry.key = key
    const handled = refusal === undefined ? entry.route.handle(exchange, key) : Effect.fail(refusal)
    return yield* Effect.annotateLogs(handled, { keyId: key.keyId, userId: key.ownerId })
  })

  return (entry: EntryPoint, request: RawRequest, body: RawBody, reply: RawReply): void => {
    const startedMillis = performance.now()
    const exchange = new KeyedExchange(request, body, reply, (onEnd) =>
      entry.key === undefined ? () => undefined : watch.watch(entry.key.id, onEnd)
    )
    const { requestId } = exchange
    run(
      enter(exchange, entry).pipe(
        Effect.catchCause((cause) => Effect.map(problemOf(cause), (problem) => exchange.fail(problem))),
        Effect.andThen(Effect.suspend(() => told(exchange, performance.now() - startedMillis))),
        Effect.provideService(RequestId, requestId),
        Effect.annotateLogs({ requestId, method: request.method, path: request.path })
      )
    )
  }
})

interface EntryPoint {
  readonly route: KeyedRoute
  readonly access: Access
  key: Principal | undefined
}

/** Nothing is told of a request whose client has left before the answer. */
const told = ({ request, status }: KeyedExchange, millis: number): Effect.Effect<void> =>
  status === 0 ? Effect.void : tellAnswer(request.method, status, millis)

/** A fault of this server itself is logged, and answered 500. */
const problemOf = (cause: Cause.Cause<Problem>): Effect.Effect<Problem> => {
  const failure = cause.reasons.find(Cause.isFailReason)?.error
  if (failure !== undefined) return Effect.succeed(failure)
  return Effect.andThen(
    logFault(cause),
    Effect.map(faultText, (text) => ServerError.of(text))
  )
}
