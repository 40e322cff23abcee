import { Cause, Effect, Result, Scope } from "effect"
import { Agent, type Dispatcher } from "undici"
import type { Socket } from "node:net"
import { problemOf } from "#src/infra/upstream/Upstream.ts"
import type { Limits } from "#src/Limits.ts"
import { EgressFailed, EgressRefused } from "./EgressError.ts"
import { hostIn, hostOf, quoted, textOf } from "./EgressHost.ts"
import { type Hop, isRedirect, redirected } from "./Redirects.ts"

export interface EgressRequest {
  readonly url: string | URL
  /** GET unless it is given */
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"
  /** `host` and those that frame the body are the server's */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** followed at most; with none a redirect is an answer like others */
  readonly redirects?: number
  /** of the answer's body, as it was sent: it is never decompressed */
  readonly maxBodyBytes?: number
  /** a longer body fails, unless its beginning is enough */
  readonly isCutAllowed?: boolean
  /** from the request to the answer's headers, and for everything, redirects included */
  readonly headersMillis?: number
  readonly totalMillis?: number
}

export interface EgressAnswer {
  /** of the last request */
  readonly url: string
  readonly status: number
  /** names are in lower case; of several lines with one name the first counts */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
  readonly isCut: boolean
}

type Connected = Effect.Effect<Socket, EgressRefused | EgressFailed>

/**
 * Requests over connections that `connectTo` makes, kept for some seconds: a connection belongs to an origin, and its address
 * was checked when it was made. undici reads no proxy from the environment here.
 */
export const makeFetch = Effect.fnUntraced(function* (
  connectTo: (host: string, port: number, isTls: boolean) => Connected,
  { limits, userAgent }: { readonly limits: Limits; readonly userAgent: string }
) {
  const scope = yield* Scope.Scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const agent = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          connections: limits.egressConnectionsPerOrigin,
          pipelining: 1,
          allowH2: false,
          keepAliveTimeout: limits.egressIdleMillis,
          keepAliveMaxTimeout: limits.egressIdleMillis,
          maxHeaderSize: limits.egressHeaderBytes,
          bodyTimeout: 0,
          connect: ({ hostname, port, protocol }, done) => {
            const isTls = protocol === "https:"
            const connected = connectTo(hostname, port === "" ? (isTls ? 443 : 80) : Number(port), isTls)
            const told = Effect.matchCause(connected, {
              onSuccess: (socket) => done(null, socket),
              onFailure: (cause) => done(errorOf(Cause.squash(cause)), null)
            })
            run(Effect.forkIn(told, scope))
          }
        })
    ),
    (open) => Effect.promise(() => open.destroy())
  )

  return Effect.fnUntraced(function* (request: EgressRequest) {
    const { redirects = 0, totalMillis = limits.egressTotalMillis } = request
    const deadline = performance.now() + totalMillis
    let hop = yield* firstHop(request, userAgent)
    for (let followed = 0; ; followed++) {
      yield* checkedUrl(hop.url)
      const answer = yield* ask(agent, hop, { ...request, redirects, totalMillis, deadline }, limits)
      const location = redirects > 0 && isRedirect(answer.status) ? answer.header("location") : undefined
      if (location === undefined) return answer
      if (followed === redirects) return yield* tooFar(hop.url, redirects)
      const next = redirected(hop, answer.status, location)
      if (next instanceof EgressFailed) return yield* next
      hop = next
    }
  })
})

const failed = (url: URL, kind: EgressFailed["kind"], problem: string) =>
  Effect.fail(new EgressFailed({ host: hostIn(url), kind, problem }))

const tooFar = (url: URL, redirects: number) =>
  failed(url, "redirect", `it redirects more than ${redirects} times`)

export const readUrl = (text: string | URL): Effect.Effect<URL, EgressRefused> => {
  const url = URL.parse(String(text))
  // Its parts cannot be told apart, and one may be a secret.
  return url === null
    ? Effect.fail(new EgressRefused({ host: "this address", reason: "not a URL" }))
    : Effect.succeed(url)
}

const firstHop = ({ body, headers = {}, method = "GET", url }: EgressRequest, userAgent: string) =>
  Effect.map(readUrl(url), (read): Hop => ({
    url: read,
    method,
    headers: {
      "user-agent": userAgent,
      "accept-encoding": "identity",
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    },
    body: body ?? null
  }))

/** The host as `Egress` names it, so that one origin has one set of connections. http is decided on with the address. */
export const checkedUrl = (url: URL): Effect.Effect<void, EgressRefused> => {
  const refused = (reason: EgressRefused["reason"]) =>
    Effect.fail(new EgressRefused({ host: hostIn(url) || "this address", reason }))
  if (url.protocol !== "https:" && url.protocol !== "http:") return refused("not https")
  if (url.username !== "" || url.password !== "") return refused("credentials in the URL")
  const host = hostOf(url.hostname)
  if (Result.isFailure(host))
    return Effect.fail(new EgressRefused({ host: quoted(url.hostname), reason: host.failure }))
  const name = textOf(host.success)
  // Setting it parses all of the URL again.
  if (typeof host.success === "string" && name !== url.hostname) url.hostname = name
  return Effect.void
}

interface Asked extends EgressRequest {
  readonly redirects: number
  readonly totalMillis: number
  /** by the monotonic clock */
  readonly deadline: number
}

type Answered = Effect.Effect<EgressAnswer, EgressRefused | EgressFailed>

/** One request. Its only timer ends it, also where it still waits for a connection. */
const ask = (agent: Agent, { body, headers, method, url }: Hop, request: Asked, limits: Limits): Answered => {
  if ("host" in headers) return failed(url, "request", "the header host is the server's own")
  return Effect.callback((resume) => {
    const exchange = new Exchange(url, request, limits, (answer) => {
      clearTimeout(timer)
      resume(answer)
    })
    const timer = setTimeout(
      () => exchange.fail("time", `no whole answer in ${request.totalMillis} ms`),
      request.deadline - performance.now()
    )
    const { headersMillis: headersTimeout = limits.egressHeadersMillis } = request
    const { origin, pathname, search } = url
    agent.dispatch({ origin, path: pathname + search, method, headers, body, headersTimeout }, exchange)
    return Effect.sync(() => {
      clearTimeout(timer)
      exchange.close()
    })
  })
}

const givenUp = new Error("given up")

/**
 * An answer as undici's callbacks bring it: a stream, a signal and promises for each took as long as all else of a push but
 * its encryption. State: what has come of it.
 */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly url: URL
  private readonly request: Asked
  private readonly limits: Limits
  private readonly told: (answer: Answered) => void
  private controller: Dispatcher.DispatchController | undefined
  private isOver = false
  private hints = 0
  private status = 0
  private headers: Readonly<Record<string, string | Array<string> | undefined>> = {}
  private readonly pieces: Array<Buffer> = []
  private length = 0

  /** `told` is called once, unless it is closed before. */
  constructor(url: URL, request: Asked, limits: Limits, told: (answer: Answered) => void) {
    this.url = url
    this.request = request
    this.limits = limits
    this.told = told
  }

  /** Closes the connection; a request that waits for one is not made. */
  close(): void {
    this.isOver = true
    this.controller?.abort(givenUp)
  }

  fail(kind: EgressFailed["kind"], problem: string): void {
    this.end(failed(this.url, kind, problem))
    this.close()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isOver) controller.abort(givenUp)
  }

  onResponseStart(_: unknown, status: number, headers: Exchange["headers"]): void {
    if (status < 200) {
      const { egressHints } = this.limits
      if (++this.hints > egressHints) this.fail("size", `an answer of more than ${egressHints} early ones`)
      return
    }
    this.status = status
    this.headers = headers
    const isFollowed = this.request.redirects > 0 && isRedirect(status) && headers["location"] !== undefined
    // The body of a redirect is not read.
    if (isFollowed) this.cut()
  }

  onResponseData(_: unknown, piece: Buffer): void {
    if (this.isOver) return
    this.pieces.push(piece)
    this.length += piece.length
    const { isCutAllowed = false } = this.request
    if (this.length <= this.bytesMax) return
    if (isCutAllowed) this.cut()
    else this.fail("size", `an answer of more than ${this.bytesMax} bytes`)
  }

  onResponseEnd(): void {
    this.answer(false)
  }

  onResponseError(_: unknown, error: Error): void {
    this.end(Effect.fail(faultOf(hostIn(this.url), error)))
  }

  private get bytesMax(): number {
    return this.request.maxBodyBytes ?? this.limits.egressBodyBytes
  }

  private cut(): void {
    this.answer(true)
    this.close()
  }

  private answer(isCut: boolean): void {
    const { headers, status, url } = this
    const header = (name: string): string | undefined => {
      const value = headers[name]
      return typeof value === "object" ? value[0] : value
    }
    const body = Buffer.concat(this.pieces).subarray(0, this.bytesMax)
    this.end(Effect.succeed({ url: url.href, status, header, body, isCut }))
  }

  private end(answer: Answered): void {
    if (this.isOver) return
    this.isOver = true
    this.told(answer)
  }
}

const kinds: Readonly<Record<string, EgressFailed["kind"]>> = {
  UND_ERR_HEADERS_TIMEOUT: "time",
  UND_ERR_HEADERS_OVERFLOW: "size",
  UND_ERR_INVALID_ARG: "request",
  UND_ERR_NOT_SUPPORTED: "request"
}

const faultOf = (host: string, error: unknown): EgressRefused | EgressFailed => {
  if (error instanceof EgressRefused || error instanceof EgressFailed) return error
  const known = errorOf(error)
  const code = "code" in known && typeof known.code === "string" ? known.code : ""
  return new EgressFailed({ host, kind: kinds[code] ?? "answer", problem: problemOf(known) })
}

const errorOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
