import { Clock, Effect } from "effect"
import type { Metering, Principal } from "#schemas/core/Authorization.ts"
import { Forbidden, RateLimited } from "#schemas/core/Problem.ts"
import { Admission } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { MailDomains } from "../domains/MailDomains.ts"
import { MailRoute } from "../transports/MailRoute.ts"

/** Real mail is from domains that its owner has verified; administrators may send from any. */
export const makeAllowed = Effect.gen(function* () {
  const { mayTell } = yield* MailDomains
  const route = yield* MailRoute
  return Effect.fnUntraced(function* ({ ownerId, role }: Principal, domain: string) {
    if (route.name === "sandbox" || role === "admin" || (yield* mayTell(ownerId, domain))) return
    return yield* Forbidden.of(`from: ${domain} is not verified for this account`)
  })
})

/** Takes from what an owner may send: so many recipients a minute, and a day of UTC. */
export const makeBudget = Effect.gen(function* () {
  const { takeFrom, takeWindow } = yield* Admission
  const { mailPerDay, mailRatePerMinute } = (yield* AppConfig).limits
  const reached = (limit: number, per: string, retryAfterSeconds: number) =>
    RateLimited.of(`Sending limit reached (${limit} recipients per ${per})`, { retryAfterSeconds })
  return Effect.fnUntraced(function* (caller: Principal, recipients: number) {
    const { refusal } = yield* takeFrom(
      { meter: { ...minute, limit: 2 * mailRatePerMinute }, cost: recipients },
      caller,
      { remoteAddress: "" }
    )
    if (refusal !== undefined) return yield* reached(mailRatePerMinute, "minute", minute.seconds / 2)
    const nowSeconds = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
    const day = Math.floor(nowSeconds / daySeconds)
    const { allowed, resetSeconds } = yield* takeWindow({
      subject: `mail:${caller.ownerId}:${day}`,
      limit: mailPerDay,
      seconds: (day + 1) * daySeconds - nowSeconds,
      cost: recipients
    })
    if (!allowed) return yield* reached(mailPerDay, "day", resetSeconds)
  })
})

/** A bucket of two minutes, so that bursts may be twice the rate. */
const minute: Omit<Metering["meter"], "limit"> = {
  name: "Mail recipients",
  per: "owner",
  shape: "bucket",
  seconds: 120
}
const daySeconds = 86_400
