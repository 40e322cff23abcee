import { hash } from "node:crypto"
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Predicate, type Types } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import type { RateDecision, WindowAsk } from "#actors/accounts/RateWindow.ts"
import {
  AdministratorsOnly,
  Authorization,
  BodilessErrors,
  CurrentKey,
  Metered,
  type Metering,
  NeedsScope,
  OpenAiAuthorization,
  OpenToCookies,
  OpenToProjectKeys,
  OpenToRouterKeys,
  type Principal,
  requestOfKey
} from "#schemas/core/Authorization.ts"
import { covers, type Scope } from "#schemas/core/Credential.ts"
import { Forbidden, RateLimited, ServiceUnavailable, Unauthorized } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { addressBlock } from "#src/front/ClientAddress.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Credentials } from "./Credentials.ts"
import { endingWithKey, KeyWatch } from "./KeyWatch.ts"
import { RequestCounts } from "./RequestCounts.ts"
import { type BrowserRequest, makeBrowserRequest, makeSessionCookie } from "./sessions/SessionCookie.ts"

export type { WindowAsk }

/** Keys that an endpoint lets in, and the meter that counts them. */
export interface Access {
  readonly routerKeys: boolean
  readonly projectKeys: "no" | "also" | "only"
  /** of all keys but those of routers and projects */
  readonly scope: Scope | "any"
  readonly administratorsOnly: boolean
  /** the cookie of a session will do, where no Authorization is sent */
  readonly cookies: boolean
  readonly metering: Metering
  /** errors of the endpoint have no body */
  readonly bodiless?: boolean
}

/** Of endpoints that let in router keys, and account keys with every right, at their own rate. */
export const anyKey: Access = {
  routerKeys: true,
  projectKeys: "no",
  scope: "full",
  administratorsOnly: false,
  cookies: false,
  metering: requestOfKey
}

/** The request, ordinary or raw, whose address is read only where a meter counts it. */
export interface Caller {
  readonly remoteAddress: string | Option.Option<string>
  /** where its cookie counts: see `entering` */
  readonly browser?: BrowserRequest
}

/** A request whose key is known. */
export interface Entry {
  readonly key: Principal
  /** for the answer, whatever it is: the state of its meter */
  readonly headers: Readonly<Record<string, string>>
  /** the answer, where the key may not call the endpoint or asks too often */
  readonly refusal: Refusal | undefined
}

type Refusal = Unauthorized | Forbidden | RateLimited

/** Lets in callers by keys, roles and rates, for endpoints of the Effect pipeline and for raw routes alike. */
export class Admission extends Context.Service<
  Admission,
  {
    /** @param authorization the header as it came; "" for none */
    readonly enter: (
      authorization: string,
      access: Access,
      caller: Caller
    ) => Effect.Effect<Entry, Unauthorized | ServiceUnavailable>
    /** Takes from a meter that counts parts of a request, such as calls of a tool, beside the request itself. */
    readonly takeFrom: (
      metering: Metering,
      key: Principal,
      caller: Caller
    ) => Effect.Effect<Pick<Entry, "headers" | "refusal">>
    /**
     * For requests without a key: each address (of IPv6, the /64) is a subject of the meter. Its name, which a shared
     * store may see, is a hash: no address is kept. The refusal is 429 in any mode.
     */
    readonly enterWithoutKey: (caller: Caller, metering: Metering) => Effect.Effect<void, RateLimited>
    /** Takes from a window of a room's own subjects; at a cost of 0 it only tells. The names of subjects are not secret. */
    readonly takeWindow: (window: WindowAsk) => Effect.Effect<RateDecision>
    /** The principal of a key, as far as memory knows, before a request's body is read; undefined: no key that could be good */
    readonly recall: (authorization: string) => Principal | "unknown" | undefined
    /**
     * `enter` without a wait, for a caller with a key that memory knows and that may call the endpoint, where the meter is
     * this process's alone. `isAtHand` is asked before anything is taken. Undefined: `enter` decides.
     */
    readonly enterAtHand: (
      authorization: string,
      access: Access,
      caller: Caller,
      isAtHand: (key: Principal) => boolean
    ) => Entry | undefined
    /** The request was answered, which its key's owner sees in their figures. */
    readonly record: (key: Principal, status: number) => void
  }
>()("signalbox/accounts/Admission") {
  static readonly layer = Layer.effect(
    Admission,
    Effect.gen(function* () {
      const credentials = yield* Credentials
      const cookie = yield* makeSessionCookie
      const buckets = yield* RateBuckets
      const counts = yield* RequestCounts
      const clock = yield* Clock.Clock
      const { limits, rateLimitMode } = yield* AppConfig
      const refuse = rateLimitMode === "block" ? Forbidden : RateLimited
      const { take, takeAtHand } = taking(buckets, limits)
      const { takeFrom, takeFromAtHand } = metering(take, takeAtHand, refuse)
      return Admission.of({
        enter: Effect.fnUntraced(function* (authorization, access, caller) {
          const { browser } = caller
          const shown = browser === undefined ? undefined : cookie.valueIn(browser)
          const key = yield* storeAway(
            shown === undefined
              ? credentials.authenticate(secretIn(authorization))
              : credentials.authenticateCookie(shown)
          )
          if (key === undefined) return yield* invalidKey()
          const closed =
            browser !== undefined && cookie.isForeign(browser) ? foreignPage() : closedTo(key, access)
          if (closed !== undefined) return { key, headers: {}, refusal: closed }
          const { headers, refusal } = yield* takeFrom(access.metering, key, caller)
          const isBarred = access.administratorsOnly && key.role !== "admin"
          return {
            key,
            headers,
            refusal: refusal ?? (isBarred ? Forbidden.of("Only administrators may do this") : undefined)
          }
        }),
        takeFrom,
        enterWithoutKey: Effect.fnUntraced(function* (caller, metering) {
          const rate = yield* take(metering, undefined, caller)
          if (rate.allowed) return
          return yield* RateLimited.of(refusalText(metering, undefined, rate), {
            retryAfterSeconds: rate.retryAfterSeconds
          })
        }),
        takeWindow: (window) => Effect.orDie(buckets.takeWindow(window)),
        recall: (authorization) => credentials.recall(secretIn(authorization)),
        enterAtHand: (authorization, access, caller, isAtHand) => {
          const key = credentials.recall(secretIn(authorization))
          // Uses of a session are written down.
          if (key === undefined || key === "unknown" || key.kind === "session") return undefined
          const isBarred = access.administratorsOnly && key.role !== "admin"
          if (isBarred || closedTo(key, access) !== undefined || !isAtHand(key)) return undefined
          const taken = takeFromAtHand(access.metering, key, caller)
          return taken && { key, ...taken }
        },
        record: (key, status) => counts.record(key.ownerId, status >= 400, clock.currentTimeMillisUnsafe())
      })
    })
  )
}

type Taken = Pick<Entry, "headers" | "refusal">

const uncounted: Taken = { headers: {}, refusal: undefined }

/** The ways to take for a request whose key is known, with the headers that tell its rate and the refusal. */
const metering = (
  take: Taking["take"],
  takeAtHand: Taking["takeAtHand"],
  refuse: typeof Forbidden | typeof RateLimited
) => {
  const metered = (counted: Metering, key: Principal, rate: RateDecision): Taken => ({
    headers: rateHeaders(rate),
    refusal: rate.allowed
      ? undefined
      : refuse.of(refusalText(counted, key, rate), { retryAfterSeconds: rate.retryAfterSeconds })
  })
  return {
    takeFrom: (named: Metering, key: Principal, caller: Caller): Effect.Effect<Taken> => {
      if (named.cost === 0) return Effect.succeed(uncounted)
      const counted = inForce(named, key)
      return Effect.map(take(counted, key, caller), (rate) => metered(counted, key, rate))
    },
    takeFromAtHand: (named: Metering, key: Principal, caller: Caller): Taken | undefined => {
      if (named.cost === 0) return uncounted
      const counted = inForce(named, key)
      const rate = takeAtHand(counted, key, caller)
      return rate && metered(counted, key, rate)
    }
  }
}

type Taking = ReturnType<typeof taking>

/** A key's own rate, and the common one of sessions, take the place of a meter that yields to them. */
const inForce = (metering: Metering, key: Principal): Metering =>
  metering.meter.yieldsToOwnRate === true && (key.kind === "session" || key.rateLimitPerMinute !== null)
    ? { ...requestOfKey, cost: metering.cost }
    : metering

/** The ways to take from a meter. `takeAtHand` answers undefined, and takes nothing, where another process has to be asked. */
const taking = (buckets: RateBuckets["Service"], limits: Limits) => {
  const settings: Readonly<Record<string, number>> = limits
  const askOf = (metering: Metering, key: Principal | undefined, caller: Caller) => {
    const { meter } = metering
    const common = meter.setting === undefined ? meter.limit : (settings[meter.setting] ?? meter.limit)
    const limit = key?.limits?.[meter.name] ?? common ?? key?.rateLimitPerMinute ?? limits.ratePerMinute
    return { subject: subjectOf(metering, key, caller), limit, cost: Math.min(metering.cost, limit) }
  }
  const bucketOf = ({ meter }: Metering, { cost, limit, subject }: ReturnType<typeof askOf>) =>
    [subject, (limit * 60) / meter.seconds, meter.limit ?? undefined, cost] as const
  const takeAtHand = (metering: Metering, key: Principal | undefined, caller: Caller) => {
    const ask = askOf(metering, key, caller)
    const { seconds, shape } = metering.meter
    if (shape === "window") return buckets.takeWindowNow({ ...ask, seconds })
    const rate = buckets.takeNow(...bucketOf(metering, ask))
    return rate && (seconds === 60 ? rate : { ...rate, limit: ask.limit })
  }
  /** The limiter is given up only when the process is: that is the server's fault, not the caller's. */
  const take = (metering: Metering, key: Principal | undefined, caller: Caller) => {
    const atHand = takeAtHand(metering, key, caller)
    if (atHand !== undefined) return Effect.succeed(atHand)
    const ask = askOf(metering, key, caller)
    const { seconds, shape } = metering.meter
    if (shape === "window") return Effect.orDie(buckets.takeWindow({ ...ask, seconds }))
    const taken = Effect.orDie(buckets.take(...bucketOf(metering, ask)))
    return seconds === 60 ? taken : Effect.map(taken, (rate) => ({ ...rate, limit: ask.limit }))
  }
  return { take, takeAtHand }
}

/** Source: contract/http#credentials. */
export const invalidKey = () => Unauthorized.of(invalidKeyText)
const invalidKeyText = "Invalid or missing API key"

/** Source: contract/sessions#foreign-pages. */
export const foreignPage = () => Forbidden.of("Pages of other origins may not do this")

/** Why the endpoint is not open to this kind of key, or to its scopes. Source: contract/accounts#scopes. */
const closedTo = (
  key: Principal,
  { projectKeys, routerKeys, scope }: Access
): Unauthorized | Forbidden | undefined => {
  if (key.kind === "project") return projectKeys === "no" ? invalidKey() : undefined
  if (projectKeys === "only" || (projectKeys === "also" && key.kind === "router"))
    return Unauthorized.of(`${invalidKeyText}: use a project key (prj_…)`)
  if (key.kind === "router")
    return routerKeys ? undefined : Forbidden.of("A router key may not do this; use an account key")
  return scope === "any" || covers(key.scopes, scope)
    ? undefined
    : Forbidden.of(`This takes the scope ${scope.replace(":*", ", or that of a bucket")}`)
}

const refusalText = ({ meter }: Metering, key: Principal | undefined, rate: RateDecision): string => {
  if (meter.refusal !== undefined) return meter.refusal(rate.limit)
  const reached =
    meter.per === "address" || key === undefined
      ? `${meter.name} are asked for too often from your address`
      : meter === requestOfKey.meter
        ? `Rate limit of ${rate.limit} requests a minute reached`
        : `${meter.name} are limited to ${rate.limit} in ${meter.seconds} s`
  return `${reached}; try again in ${rate.retryAfterSeconds} s`
}

/** The headers of an answer that tell its key's rate. Source: contract/http#rate-limits. */
const rateHeaders = (decision: RateDecision): Record<string, string> => ({
  "ratelimit-limit": String(decision.limit),
  "ratelimit-remaining": String(decision.remaining),
  "ratelimit-reset": String(decision.resetSeconds)
})

const subjectOf = ({ meter }: Metering, key: Principal | undefined, caller: Caller): string => {
  // Every request makes this name: the general one is the key's id as it is.
  if (meter === requestOfKey.meter && key !== undefined) return key.id
  const { name, per } = meter
  if (per !== "address" && key !== undefined) return `${name} ${per === "owner" ? key.ownerId : key.id}`
  const { remoteAddress } = caller
  const address = Predicate.isString(remoteAddress)
    ? remoteAddress
    : Option.getOrElse(remoteAddress, () => "")
  return `${name} ${hash("sha256", `${name} ${addressBlock(address)}`, "base64url").slice(0, 22)}`
}

const secretIn = (authorization: string): string => bearer.exec(authorization)?.[1] ?? ""

const bearer = /^bearer +([^ ]+) *$/i

type Handled = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled | Refusal>

/** An endpoint, or a group of them, whose annotations say who may call it. */
export interface Annotated {
  readonly annotations: Context.Context<never>
}

export const accessOf = (endpoint: Annotated, group: Annotated): Access => {
  const annotations = Context.merge(group.annotations, endpoint.annotations)
  return {
    routerKeys: Context.get(annotations, OpenToRouterKeys),
    projectKeys: Context.get(annotations, OpenToProjectKeys),
    scope: Context.get(annotations, NeedsScope),
    administratorsOnly: Context.get(annotations, AdministratorsOnly),
    cookies: Context.get(annotations, OpenToCookies),
    metering: Context.get(annotations, Metered),
    bodiless: Context.get(annotations, BodilessErrors)
  }
}

/** The peer's address is asked of the system only where a meter wants it. */
const withBrowser = (caller: Caller, browser: BrowserRequest): Caller => ({
  browser,
  get remoteAddress() {
    return caller.remoteAddress
  }
})

/**
 * As `enter`, by a session's cookie too: it counts where the endpoint is open to cookies and no Authorization is sent.
 * `clear` is run where the cookie is good for nothing. Source: contract/sessions#cookie.
 */
export const entering = <R>(
  admission: Admission["Service"],
  access: Access,
  authorization: string,
  caller: Caller,
  browserOf: () => BrowserRequest,
  clear: (browser: BrowserRequest) => Effect.Effect<void, never, R>
): Effect.Effect<Entry, Unauthorized | ServiceUnavailable, R> => {
  if (!access.cookies || authorization !== "") return admission.enter(authorization, access, caller)
  const browser = browserOf()
  const entered = admission.enter(authorization, access, withBrowser(caller, browser))
  return Effect.tapErrorTag(entered, "Unauthorized", () => clear(browser))
}

const middleware = Effect.gen(function* () {
  const admission = yield* Admission
  const watch = yield* KeyWatch
  const browserRequest = yield* makeBrowserRequest
  const cookie = yield* makeSessionCookie
  return Authorization.of({
    apiKey: (httpEffect, { endpoint, group }) =>
      Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const access = accessOf(endpoint, group)
        const { headers, key, refusal } = yield* entering(
          admission,
          access,
          request.headers["authorization"] ?? "",
          request,
          () => browserRequest(request),
          cookie.clear
        )
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeaders(response, headers))
        )
        const handled: Handled =
          refusal === undefined
            ? Effect.map(Effect.provideService(httpEffect, CurrentKey, key), (response) =>
                endingWithKey(watch, key.id, response)
              )
            : Effect.fail(refusal)
        return yield* handled.pipe(
          Effect.onExit((exit) => Effect.sync(() => record(admission, key, exit))),
          Effect.annotateLogs({ keyId: key.keyId, userId: key.ownerId })
        )
      })
  })
})

/** A declared failure is an answer of 400 or more; a request that its client gave up is no answer. */
const record = (
  admission: Admission["Service"],
  key: Principal,
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>
): void => {
  if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return
  admission.record(key, Exit.isFailure(exit) ? 500 : exit.value.status)
}

/** `Authorization` in both forms. */
export const middlewareLayer = Layer.merge(
  Layer.effect(Authorization, middleware),
  Layer.effect(OpenAiAuthorization, middleware)
)
