import { Clock, Effect, Fiber, FiberSet, Schedule, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Gone, headersOf, type Problem, Unauthorized } from "#schemas/core/Problem.ts"
import { type KeyedExchange, openServing } from "#src/accounts/KeyedRoute.ts"
import { byteAnswer } from "#src/http/ByteAnswer.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { acceptsPage, looksFirst } from "#streams/files/links/Visitor.ts"
import { Archives } from "../archive/Archives.ts"
import { FileReads } from "../transfers/FileReads.ts"
import { Tree } from "../tree/Tree.ts"
import { type LinkPage, passwordPage, problemPage, targetPage } from "./LinkPages.ts"
import { formBytes, LinkPasswords, passwordIn, passwordSent } from "./LinkPasswords.ts"
import { type LinkTarget, targetOf } from "./LinkTarget.ts"
import { type FoundLink, type Hold, LinkUses, type OpenUse, type Outcome, type Resuming } from "./LinkUses.ts"
import { LinkWatch } from "./LinkWatch.ts"
import { linkNotFound } from "./ShareLinks.ts"
import { directPath } from "./UploadLinks.ts"

const expired = Gone.of("Link expired")
const exhausted = Gone.of("Link exhausted")
const passwordRequired = Unauthorized.of("Password required")

/** A link that has not expired, and what its request says of the use that it is for. */
interface Visit {
  readonly link: FoundLink
  readonly query: URLSearchParams
  readonly who: Resuming | undefined
  readonly use: OpenUse | undefined
}

/** The services behind a request. */
interface Services {
  readonly uses: LinkUses["Service"]
  readonly passwords: LinkPasswords["Service"]
  readonly watch: LinkWatch["Service"]
  readonly target: (
    link: FoundLink,
    use: OpenUse | undefined
  ) => Effect.Effect<LinkTarget, Problem | SqlError, Scope.Scope>
  readonly hasExpired: (link: FoundLink) => boolean
  /** goes on beside the requests */
  readonly run: (work: Effect.Effect<void>) => unknown
}

type Handle = (exchange: KeyedExchange) => Effect.Effect<void, Problem, Scope.Scope>

const sendPage = (exchange: KeyedExchange, page: LinkPage, more: Readonly<Record<string, string>> = {}) =>
  exchange.send(page.status, [...page.headers, ...Object.entries(more)], page.text)

const visitorOf = ({ request }: KeyedExchange) => ({
  method: request.method,
  header: (name: string) => request.header(name)
})

/** People get errors as pages. */
const fail = (exchange: KeyedExchange, problem: Problem): Effect.Effect<void, Problem> => {
  if (!acceptsPage(visitorOf(exchange))) return Effect.fail(problem)
  const { message, status } = problem
  const { "retry-after": retryAfter } = headersOf(problem)
  const page =
    problem._tag === "Unauthorized"
      ? passwordPage(status, problem === passwordRequired ? undefined : message)
      : problemPage(status, message)
  return Effect.sync(() =>
    sendPage(exchange, page, retryAfter === undefined ? {} : { "retry-after": retryAfter })
  )
}

const clientOf = ({ request }: KeyedExchange) => ({
  address: request.remoteAddress,
  agent: request.header("user-agent")
})

/** The bytes that the request will get; undefined: none, by a condition or a range that cannot be satisfied. */
const rangeOf = ({ request }: KeyedExchange, { etag, modifiedAt, sizeBytes }: LinkTarget) =>
  byteAnswer(
    { method: request.method, header: (name) => request.header(name) },
    { sizeBytes, etag, contentType: "", headers: {}, ...(modifiedAt && { lastModified: modifiedAt }) }
  ).range

/** A ticket, or a range from the address of a use: a request that goes on with one. */
const resumingOf = ({ request }: KeyedExchange, query: URLSearchParams): Resuming | undefined => {
  if (request.method === "POST") return undefined
  const ticket = query.get("ticket")
  if (ticket !== null) return { ticket }
  return request.header("range") === "" ? undefined : { address: request.remoteAddress }
}

const hasTicket = ({ use, who }: Visit): boolean => use !== undefined && who !== undefined && "ticket" in who

/** Unknown, expired, exhausted: in this order, before a password is looked at. */
const visiting = ({ hasExpired, uses }: Services) =>
  Effect.fnUntraced(function* (exchange: KeyedExchange): Effect.fn.Return<Visit, Problem> {
    const { request } = exchange
    const link = yield* storeAway(uses.find(request.params["token"] ?? ""))
    if (link === undefined) return yield* linkNotFound
    if (hasExpired(link)) return yield* expired
    const query = new URLSearchParams(request.query)
    const who = resumingOf(exchange, query)
    const use = who === undefined ? undefined : yield* storeAway(uses.open(link, who))
    if (link.cap !== null && link.uses >= link.cap && use === undefined) return yield* exhausted
    return { link, query, who, use }
  })

const checking = ({ passwords }: Services) =>
  Effect.fnUntraced(function* (
    { request }: KeyedExchange,
    { hash, password }: FoundLink,
    given: string | undefined
  ) {
    if (password === null) return
    if (given === undefined) return yield* passwordRequired
    yield* passwords.check({ hash, stored: password, given, address: request.remoteAddress })
  })

/** An answer waits so long at most until its use is given back. */
const givenBackMillis = 1_000

/** The end of an answer that had no bytes. */
const nothing: Outcome = { sentBytes: 0, isWhole: false, isLast: false }

/** Counts a use, or goes on with one; fails where there is none. */
const holding = ({ hasExpired, run, uses }: Services) =>
  Effect.fnUntraced(function* (
    exchange: KeyedExchange,
    { link, use, who }: Visit,
    { sizeBytes, versionId }: LinkTarget,
    bytes: number
  ) {
    const resumed =
      use === undefined || who === undefined ? undefined : yield* storeAway(uses.resume(link, who, bytes))
    if (resumed !== undefined) return resumed
    // It goes on where its answer is too late: a use that nobody gets to have is given back.
    const beginning = yield* Effect.forkDetach(
      uses.begin(link, clientOf(exchange), { versionId, sizeBytes, bytes })
    )
    const begun = yield* Effect.tapError(storeAway(Fiber.join(beginning)), () =>
      Effect.sync(() =>
        run(
          Fiber.join(beginning).pipe(
            Effect.flatMap((held) => (held === undefined ? Effect.void : uses.end(held, nothing))),
            Effect.catch((error) => Effect.logWarning("a download was not begun", error))
          )
        )
      )
    )
    return begun ?? (yield* hasExpired(link) ? expired : exhausted)
  })

const sending = (services: Services) => {
  const { run, uses, watch } = services
  const hold = holding(services)
  const noted = (held: Hold, outcome: Outcome): Effect.Effect<void> =>
    uses.end(held, outcome).pipe(
      Effect.retry({ times: 8, schedule: Schedule.exponential("200 millis") }),
      Effect.catch((error) => Effect.logWarning("the end of a download was not noted", error))
    )
  /** Before the client hears that it gets nothing: it may ask again at once. */
  const givenBack = (held: Hold): Effect.Effect<void> =>
    Effect.flatMap(Effect.forkDetach(noted(held, nothing)), (ending) =>
      Effect.asVoid(Effect.timeoutOption(Fiber.join(ending), givenBackMillis))
    )
  return Effect.fnUntraced(function* (exchange: KeyedExchange, visit: Visit, found: LinkTarget) {
    const { link, query } = visit
    const isAttached = (link.cap !== null && hasTicket(visit)) || query.get("download") === "1"
    const disposition = isAttached ? "attachment" : "inline"
    const range = rangeOf(exchange, found)
    if (exchange.request.method === "HEAD" || range === undefined)
      return yield* found.send(exchange, disposition)
    const held = yield* hold(exchange, visit, found, range.to - range.from)
    exchange.watch = (onEnd) => watch.watch(link.hash, onEnd)
    const sent = found.send(exchange, disposition, (sentBytes, isWhole) =>
      run(
        noted(held, {
          sentBytes,
          isWhole,
          isLast: exchange.status === 200 || range.to === found.sizeBytes
        })
      )
    )
    // The bytes cannot be read where no answer was begun.
    const isBegun = () => exchange.status === 200 || exchange.status === 206
    yield* Effect.onExit(sent, () => (isBegun() ? Effect.void : givenBack(held)))
  })
}

/** The bytes, or the page before them. */
const getting = (services: Services): Handle => {
  const visitOf = visiting(services)
  const check = checking(services)
  const send = sending(services)
  return Effect.fnUntraced(function* (exchange) {
    const visit = yield* visitOf(exchange)
    const { link, query, use } = visit
    const given = passwordIn(exchange, query)
    if (!hasTicket(visit)) yield* check(exchange, link, given)
    const found = yield* storeAway(services.target(link, use))
    const { cap, expiresAt } = link
    if (cap === null || use !== undefined || !looksFirst(visitorOf(exchange)))
      return yield* send(exchange, visit, found)
    const { isDirectory, name, sizeBytes } = found
    const page = targetPage({
      name,
      isDirectory,
      sizeBytes,
      left: cap - link.uses,
      expiresAt,
      password: link.password === null ? undefined : given
    })
    sendPage(exchange, page)
  })
}

/** Counts a use, whose bytes are behind the address that it answers with. */
const taking = (services: Services): Handle => {
  const visit = visiting(services)
  const check = checking(services)
  const { hasExpired, target, uses } = services
  return Effect.fnUntraced(function* (exchange) {
    const { link, query } = yield* visit(exchange)
    yield* check(exchange, link, yield* passwordSent(exchange, query))
    const { sizeBytes, versionId } = yield* storeAway(target(link, undefined))
    const ticket = yield* storeAway(uses.beginWithTicket(link, clientOf(exchange), { versionId, sizeBytes }))
    if (ticket === undefined) return yield* hasExpired(link) ? expired : exhausted
    const path = directPath(exchange.request.params["token"] ?? "")
    const more = query.get("download") === "1" ? "&download=1" : ""
    exchange.send(303, [
      ["Location", `${path}?ticket=${ticket}${more}`],
      ["Cache-Control", "no-store"]
    ])
  })
}

/** Downloads by share links: what a request may is in its address. Source: contract/files#links. */
export const directRoutes = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const serve = yield* openServing
  const services: Services = {
    uses: yield* LinkUses,
    passwords: yield* LinkPasswords,
    watch: yield* LinkWatch,
    target: targetOf({ archives: yield* Archives, reads: yield* FileReads, tree: yield* Tree }),
    hasExpired: ({ expiresAt }) =>
      expiresAt !== null && expiresAt.getTime() <= clock.currentTimeMillisUnsafe(),
    run: yield* FiberSet.makeRuntime<never, void>()
  }
  const path = "/direct/:token"
  const route = (method: string, maxBodyBytes: number, handle: Handle): RawRoute => ({
    methods: [method],
    path,
    cors: "configured",
    maxBodyBytes,
    handle: serve(path, (exchange) =>
      handle(exchange).pipe(
        Effect.scoped,
        Effect.catch((problem) => fail(exchange, problem))
      )
    )
  })
  return [route("GET", 0, getting(services)), route("POST", formBytes, taking(services))]
})
