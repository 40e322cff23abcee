import { hash as digest, randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Predicate, Result, Semaphore } from "effect"
import { BadRequest, RateLimited, ServiceUnavailable, Unauthorized } from "#schemas/core/Problem.ts"
import { Admission, type WindowAsk } from "#src/accounts/Admission.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { addressBlock } from "#src/front/ClientAddress.ts"
import { wholeBody } from "#src/http/WholeBody.ts"
import type { Limits } from "#src/Limits.ts"

const saltBytes = 16
const keyBytes = 32

/** 32 MiB and some 80 ms for each. */
const cost = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }

/** One way to write letters with marks: keyboards differ. */
const derived = (password: string, salt: Uint8Array): Effect.Effect<Buffer> =>
  Effect.callback<Buffer>((resume) =>
    scrypt(password.normalize("NFC"), salt, keyBytes, cost, (error, key) =>
      resume(error === null ? Effect.succeed(key) : Effect.die(error))
    )
  )

/** A password that was given for a link. */
export interface GivenPassword {
  /** of the link's token */
  readonly hash: Uint8Array
  /** as `hash` made it */
  readonly stored: Uint8Array
  readonly given: string
  /** the client's */
  readonly address: string
}

/** Passwords of links. Source: contract/files#links. */
export class LinkPasswords extends Context.Service<
  LinkPasswords,
  {
    /** the salt, then scrypt of it: 48 bytes */
    readonly hash: (password: string) => Effect.Effect<Buffer, ServiceUnavailable>
    /** Fails where it is the wrong one, or too many wrong ones were given. */
    readonly check: (
      password: GivenPassword
    ) => Effect.Effect<void, Unauthorized | RateLimited | ServiceUnavailable>
  }
>()("signalbox/files/LinkPasswords") {
  static readonly layer = Layer.effect(
    LinkPasswords,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const { takeWindow } = yield* Admission
      const turns = yield* Semaphore.make(limits.passwordsAtOnce)
      let waiting = 0
      const inTurn = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | ServiceUnavailable> =>
        Effect.suspend((): Effect.Effect<A, E | ServiceUnavailable> => {
          if (waiting >= limits.passwordsWaiting)
            return Effect.fail(ServiceUnavailable.of("Too many passwords are being checked; try again"))
          waiting++
          return Effect.ensuring(
            turns.withPermits(1)(work),
            Effect.sync(() => void waiting--)
          )
        })
      return LinkPasswords.of({
        hash: (password) =>
          inTurn(
            Effect.suspend(() => {
              const salt = randomBytes(saltBytes)
              return Effect.map(derived(password, salt), (key) => Buffer.concat([salt, key]))
            })
          ),
        check: (password) => inTurn(checking(takeWindow, limits, password))
      })
    })
  )
}

/** The windows of wrong ones: of the link from this address, and of the link. Their names tell neither. */
const windowsOf = (limits: Limits, { address, hash }: GivenPassword): ReadonlyArray<WindowAsk> => {
  const link = Buffer.from(hash).toString("base64url")
  const from = digest("sha256", `${link} ${addressBlock(address)}`, "base64url")
  const named = (name: string) => `Link passwords ${name}`
  return [
    { subject: named(from.slice(0, 22)), limit: limits.wrongPasswordsPerMinute, seconds: 60, cost: 1 },
    { subject: named(link.slice(0, 22)), limit: limits.wrongPasswordsPerHour, seconds: 3_600, cost: 1 }
  ]
}

const checking = Effect.fnUntraced(function* (
  takeWindow: Admission["Service"]["takeWindow"],
  limits: Limits,
  password: GivenPassword
) {
  const windows = windowsOf(limits, password)
  for (const window of windows) {
    // It takes nothing: right ones are not counted.
    const { remaining, resetSeconds } = yield* takeWindow({ ...window, cost: 0 })
    if (remaining < 1)
      return yield* RateLimited.of(`Too many wrong passwords; try again in ${resetSeconds} s`, {
        retryAfterSeconds: resetSeconds
      })
  }
  const { given, stored } = password
  const key = yield* derived(given, stored.subarray(0, saltBytes))
  if (timingSafeEqual(key, stored.subarray(saltBytes))) return
  for (const window of windows) yield* takeWindow(window)
  return yield* Unauthorized.of("Wrong password")
})

/** The body of a POST that downloads: a password, and no more. */
export const formBytes = 16 * 1024

const presence = (text: string | null | undefined): string | undefined =>
  text === null || text === "" ? undefined : text

/** The password in the header (ASCII alone comes through whole there) or the query of a request; undefined: none. */
export const passwordIn = ({ request }: KeyedExchange, query: URLSearchParams): string | undefined =>
  presence(request.header("x-share-password")) ?? presence(query.get("password"))

/** The same of a POST, whose body goes first: a form, or JSON. Other bodies say nothing. */
export const passwordSent = Effect.fnUntraced(function* (exchange: KeyedExchange, query: URLSearchParams) {
  const bytes = yield* wholeBody(exchange.body, {
    maxBodyBytes: formBytes,
    reserve: () => true,
    tooLarge: `The body may have at most ${formBytes} bytes`
  })
  const type = exchange.request.header("content-type").split(";", 1)[0]?.trim().toLowerCase()
  const text = Buffer.from(bytes ?? []).toString("utf8")
  if (type === "application/x-www-form-urlencoded")
    return presence(new URLSearchParams(text).get("password")) ?? passwordIn(exchange, query)
  if (type !== "application/json" || text === "") return passwordIn(exchange, query)
  const body = Result.try((): unknown => JSON.parse(text))
  if (Result.isFailure(body)) return yield* BadRequest.of("The body is not valid JSON")
  const value = Predicate.hasProperty(body.success, "password") ? body.success.password : undefined
  if (value === undefined || value === null) return passwordIn(exchange, query)
  if (!Predicate.isString(value))
    return yield* BadRequest.of("password: expected text", { param: "password" })
  return presence(value)
})
