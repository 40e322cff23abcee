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

type Body = { readonly bytes: Uint8Array; readonly isCut: boolean }
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

export const readUrl = (text: string | URL): Effect.Effect<URL, EgressRefused> =>
  URL.canParse(String(text))
    ? Effect.succeed(new URL(text))
    : // Its parts cannot be told apart, and one may be a secret.
      Effect.fail(new EgressRefused({ host: "this address", reason: "not a URL" }))

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

/** One request. A single controller ends it, early or late: combined signals and races cost more than all else here. */
const ask = (
  agent: Agent,
  hop: Hop,
  request: Asked,
  limits: Limits
): Effect.Effect<EgressAnswer, EgressRefused | EgressFailed> => {
  const host = hostIn(hop.url)
  if ("host" in hop.headers) return failed(hop.url, "request", "the header host is the server's own")
  return Effect.callback((resume) => {
    const end = new AbortController()
    const timer = setTimeout(() => {
      // The request may wait for a connection, where it does not hear of its end.
      resume(failed(hop.url, "time", `no whole answer in ${request.totalMillis} ms`))
      end.abort()
    }, request.deadline - performance.now())
    const tell = async (): Promise<void> => {
      try {
        resume(Effect.succeed(await exchanged(agent, hop, request, { limits, end })))
      } catch (error) {
        resume(Effect.fail(faultOf(host, error)))
      } finally {
        clearTimeout(timer)
      }
    }
    void tell()
    return Effect.sync(() => {
      clearTimeout(timer)
      end.abort()
    })
  })
}

const exchanged = async (
  agent: Agent,
  { body, headers, method, url }: Hop,
  request: Asked,
  { end, limits }: { readonly end: AbortController; readonly limits: Limits }
): Promise<EgressAnswer> => {
  const host = hostIn(url)
  const { headersMillis = limits.egressHeadersMillis, redirects } = request
  const { isCutAllowed = false, maxBodyBytes = limits.egressBodyBytes } = request
  let hints = 0
  const answer = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers,
    body,
    signal: end.signal,
    headersTimeout: headersMillis,
    onInfo: () => {
      if (++hints > limits.egressHints)
        end.abort(tooLong(host, `an answer of more than ${limits.egressHints} early ones`))
    }
  })
  const { statusCode: status } = answer
  const isFollowed = redirects > 0 && isRedirect(status) && answer.headers["location"] !== undefined
  const { bytes, isCut } = await (isFollowed ? leave(answer.body) : bodyOf(answer.body, maxBodyBytes))
  if (isCut && !isFollowed && !isCutAllowed)
    throw tooLong(host, `an answer of more than ${maxBodyBytes} bytes`)
  const header = (name: string): string | undefined => {
    const value = answer.headers[name]
    return typeof value === "object" ? value[0] : value
  }
  return { url: url.href, status, header, body: bytes, isCut }
}

const tooLong = (host: string, problem: string) => new EgressFailed({ host, kind: "size", problem })

/** At most so many bytes; the connection of a longer body is closed. */
const bodyOf = async (body: Dispatcher.ResponseData["body"], maxBytes: number): Promise<Body> => {
  const pieces: Array<Buffer> = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece)
    length += piece.length
    if (length > maxBytes) break
  }
  return { bytes: Buffer.concat(pieces).subarray(0, maxBytes), isCut: length > maxBytes }
}

/** The body of a redirect is not read: its connection is closed. */
const leave = async (body: Dispatcher.ResponseData["body"]): Promise<Body> => {
  body.on("error", () => undefined).destroy()
  return { bytes: new Uint8Array(), isCut: true }
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
