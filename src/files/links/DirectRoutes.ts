import { Clock, Effect, FiberSet, type Scope } from "effect"
import { Gone, headersOf, type Problem, Unauthorized } from "#schemas/core/Problem.ts"
import { type KeyedExchange, openServing } from "#src/accounts/KeyedRoute.ts"
import { requestedRange } from "#src/http/ByteRanges.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { acceptsPage, looksFirst } from "#streams/files/links/Visitor.ts"
import { Archives } from "../archive/Archives.ts"
import { FileReads } from "../transfers/FileReads.ts"
import { Tree } from "../tree/Tree.ts"
import { formBytes, passwordIn, passwordSent } from "./GivenPassword.ts"
import { type LinkPage, passwordPage, problemPage, targetPage } from "./LinkPages.ts"
import { LinkPasswords } from "./LinkPasswords.ts"
import { type LinkTarget, targetOf } from "./LinkTarget.ts"
import { type FoundLink, type Hold, LinkUses, type OpenUse, type Resuming } from "./LinkUses.ts"
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

const sendPage = (exchange: KeyedExchange, page: LinkPage, more: Readonly<Record<string, string>> = {}) =>
  exchange.send(page.status, [...page.headers, ...Object.entries(more)], page.text)

/** People get errors as pages. */
const fail = (exchange: KeyedExchange, problem: Problem): Effect.Effect<void, Problem> => {
  if (!acceptsPage(visitorOf(exchange))) return Effect.fail(problem)
  const { message, status } = problem
  const { "retry-after": retryAfter } = headersOf(problem)
  const isPassword = problem._tag === "Unauthorized"
  const page = isPassword
    ? passwordPage(status, problem === passwordRequired ? undefined : message)
    : problemPage(status, message)
  return Effect.sync(() =>
    sendPage(exchange, page, retryAfter === undefined ? {} : { "retry-after": retryAfter })
  )
}

const visitorOf = ({ request }: KeyedExchange) => ({
  method: request.method,
  header: (name: string) => request.header(name)
})

const clientOf = ({ request }: KeyedExchange) => ({
  address: request.remoteAddress,
  agent: request.header("user-agent")
})

/** The bytes that the request will get, if it gets any. */
const rangeOf = ({ request }: KeyedExchange, { etag, modifiedAt, sizeBytes }: LinkTarget) => {
  const ifRange = request.header("if-range").trim()
  const isSame =
    ifRange === "" ||
    ifRange === etag ||
    (modifiedAt !== undefined && Date.parse(ifRange) === Math.floor(modifiedAt.getTime() / 1000) * 1000)
  const wish = requestedRange(isSame ? request.header("range") : undefined, sizeBytes)
  return wish._tag === "Part" ? wish.range : { from: 0, to: sizeBytes }
}

/** Downloads by share links: what a request may is in its address. Source: contract/files#links. */
export const directRoutes = Effect.gen(function* () {
  const uses = yield* LinkUses
  const passwords = yield* LinkPasswords
  const watch = yield* LinkWatch
  const clock = yield* Clock.Clock
  const serve = yield* openServing
  const run = yield* FiberSet.makeRuntime()
  const target = targetOf({ archives: yield* Archives, reads: yield* FileReads, tree: yield* Tree })
  const hasExpired = ({ expiresAt }: FoundLink) =>
    expiresAt !== null && expiresAt.getTime() <= clock.currentTimeMillisUnsafe()

  /** Unknown, expired, exhausted: in this order, before a password is looked at. */
  const visit = Effect.fnUntraced(function* (exchange: KeyedExchange): Effect.fn.Return<Visit, Problem> {
    const { request } = exchange
    const link = yield* storeAway(uses.find(request.params["token"] ?? ""))
    if (link === undefined) return yield* linkNotFound
    if (hasExpired(link)) return yield* expired
    const query = new URLSearchParams(request.query)
    const ticket = query.get("ticket")
    const who =
      request.method === "POST"
        ? undefined
        : ticket !== null
          ? { ticket }
          : request.header("range") === ""
            ? undefined
            : { address: request.remoteAddress }
    const use = who === undefined ? undefined : yield* storeAway(uses.open(link, who))
    if (link.cap !== null && link.uses >= link.cap && use === undefined) return yield* exhausted
    return { link, query, who, use }
  })

  const checkPassword = Effect.fnUntraced(function* (
    { request }: KeyedExchange,
    { hash, password }: FoundLink,
    given: string | undefined
  ) {
    if (password === null) return
    if (given === undefined) return yield* passwordRequired
    yield* passwords.check({ hash, stored: password, given, address: request.remoteAddress })
  })

  const ended = (hold: Hold, sentBytes: number, isWhole: boolean, isLast: boolean): void =>
    void run(
      uses.end(hold, { sentBytes, isWhole, isLast }).pipe(
        Effect.retry({ times: 3 }),
        Effect.catch((error) => Effect.logWarning("the end of a download was not noted", error))
      )
    )

  /** Counts a use, or goes on with one; fails where there is none. */
  const hold = Effect.fnUntraced(function* (
    exchange: KeyedExchange,
    { link, use, who }: Visit,
    { sizeBytes, versionId }: LinkTarget,
    bytes: number
  ) {
    const resumed =
      use === undefined || who === undefined ? undefined : yield* storeAway(uses.resume(link, who, bytes))
    if (resumed !== undefined) return resumed
    const of = { versionId, sizeBytes, bytes }
    const begun = yield* storeAway(uses.begin(link, clientOf(exchange), of))
    return begun ?? (yield* hasExpired(link) ? expired : exhausted)
  })

  const send = Effect.fnUntraced(function* (exchange: KeyedExchange, visited: Visit, found: LinkTarget) {
    const { link, query, use, who } = visited
    const isTaken = link.cap !== null && who !== undefined && "ticket" in who && use !== undefined
    const disposition = isTaken || query.get("download") === "1" ? "attachment" : "inline"
    if (exchange.request.method === "HEAD") return yield* found.send(exchange, disposition)
    const range = rangeOf(exchange, found)
    const held = yield* hold(exchange, visited, found, range.to - range.from)
    let isSending = false
    exchange.watch = (onEnd) => watch.watch(link.hash, onEnd)
    const sending = found.send(exchange, disposition, (sentBytes, isWhole) => {
      isSending = true
      ended(held, sentBytes, isWhole, exchange.status === 200 || range.to === found.sizeBytes)
    })
    yield* Effect.onExit(sending, () =>
      Effect.sync(() => {
        // 304, 412, 416, or bytes that cannot be read
        const isAnswered = exchange.status === 200 || exchange.status === 206
        if (!isSending && !isAnswered) ended(held, 0, false, false)
      })
    )
  })

  const get = (exchange: KeyedExchange): Effect.Effect<void, Problem, Scope.Scope> =>
    Effect.gen(function* () {
      const visited = yield* visit(exchange)
      const { link, query, use, who } = visited
      const given = passwordIn(exchange, query)
      const hasTicket = use !== undefined && who !== undefined && "ticket" in who
      if (!hasTicket) yield* checkPassword(exchange, link, given)
      const found = yield* storeAway(target(link, use))
      const { cap, expiresAt } = link
      if (cap === null || use !== undefined || !looksFirst(visitorOf(exchange)))
        return yield* send(exchange, visited, found)
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

  /** Counts a use, whose bytes are behind the address that it answers with. */
  const post = (exchange: KeyedExchange): Effect.Effect<void, Problem, Scope.Scope> =>
    Effect.gen(function* () {
      const { link, query } = yield* visit(exchange)
      const given = yield* passwordSent(exchange, query)
      yield* checkPassword(exchange, link, given)
      const { sizeBytes, versionId } = yield* storeAway(target(link, undefined))
      const ticket = yield* storeAway(
        uses.beginWithTicket(link, clientOf(exchange), { versionId, sizeBytes })
      )
      if (ticket === undefined) return yield* hasExpired(link) ? expired : exhausted
      const path = directPath(exchange.request.params["token"] ?? "")
      const more = query.get("download") === "1" ? "&download=1" : ""
      exchange.send(303, [
        ["Location", `${path}?ticket=${ticket}${more}`],
        ["Cache-Control", "no-store"]
      ])
    })

  const route = (
    method: string,
    maxBodyBytes: number,
    handle: (exchange: KeyedExchange) => Effect.Effect<void, Problem, Scope.Scope>
  ): RawRoute => ({
    methods: [method],
    path: "/direct/:token",
    cors: "configured",
    maxBodyBytes,
    handle: serve("/direct/:token", (exchange) =>
      handle(exchange).pipe(
        Effect.scoped,
        Effect.catch((problem) => fail(exchange, problem))
      )
    )
  })
  return [route("GET", 0, get), route("POST", formBytes, post)]
})
