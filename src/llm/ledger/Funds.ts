import { Cache, Clock, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { KeyDirectory } from "#src/accounts/Keys.ts"
import { Credits } from "./Credits.ts"
import { type SubscriptionState, Subscriptions } from "./Subscriptions.ts"

/** The means with which a key can pay. */
export interface Funds {
  /** an active one */
  readonly subscription: SubscriptionState | undefined
  readonly hasAllowance: boolean
  readonly hasCredits: boolean
}

/** Funds are an owner's, whichever of its keys pays; a key with a spend limit has its own share of the credits. */
export interface KeyFunds {
  /** as of the last two seconds */
  readonly of: (key: Principal) => Effect.Effect<Funds, SqlError>
  /**
   * `of` found some within the last minute. Such keys are let in at once, within the handshake, where the answer is
   * one packet; the ledger bounds the spending of the session that follows.
   */
  readonly hadSome: (key: Principal) => boolean
}

/** Many sessions of one owner greet at once. */
const fundsMillis = 2_000
const fundedMillis = 60_000
const namesMax = 20_000

const noFunds: Funds = { subscription: undefined, hasAllowance: false, hasCredits: false }

export const makeKeyFunds: Effect.Effect<
  KeyFunds,
  never,
  Credentials | Credits | KeyDirectory | Subscriptions
> = Effect.gen(function* () {
  const credits = yield* Credits
  const subscriptions = yield* Subscriptions
  const directory = yield* KeyDirectory
  const credentials = yield* Credentials
  const funded = new RecentlyFunded(yield* Clock.Clock)

  const ofOwner = yield* Cache.make({
    capacity: namesMax,
    timeToLive: fundsMillis,
    lookup: Effect.fnUntraced(function* (ownerId: string) {
      const { balance } = yield* credits.of(ownerId)
      const subscription = yield* subscriptions.of(ownerId)
      const isActive = subscription?.subscription.status === "active"
      return {
        subscription: isActive ? subscription : undefined,
        hasAllowance: isActive && subscription.allowances.every((rest) => rest.tokens_remaining > 0),
        hasCredits: balance > 0n
      }
    })
  })
  const spentBy = yield* Cache.make({
    capacity: namesMax,
    timeToLive: fundsMillis,
    lookup: (keyId: string) => credits.spentBy(keyId)
  })
  const limitOf = ({ keyId }: Principal) => directory.get(keyId)?.spend_limit_usd ?? null
  const nameOf = (key: Principal) => (limitOf(key) === null ? key.ownerId : key.keyId)

  const lookup = Effect.fnUntraced(function* (key: Principal) {
    // Revoked since it was let in.
    if (credentials.holder(key.keyId) === undefined) return noFunds
    const limit = limitOf(key)
    const funds = yield* Cache.get(ofOwner, key.ownerId)
    if (limit === null || !funds.hasCredits) return funds
    const spent = yield* Cache.get(spentBy, key.keyId)
    return { ...funds, hasCredits: Number(spent) < limit * 1e12 }
  })
  return {
    of: (key) =>
      Effect.tap(lookup(key), ({ hasAllowance, hasCredits }) =>
        Effect.sync(() => {
          if (hasAllowance || hasCredits) funded.add(nameOf(key))
        })
      ),
    hadSome: (key) => funded.has(nameOf(key))
  }
})

/** Owners, and keys with a spend limit, that could pay a moment ago. */
class RecentlyFunded {
  readonly #until = new Map<string, number>()
  readonly #clock: Clock.Clock

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  has(name: string): boolean {
    return (this.#until.get(name) ?? 0) > this.#clock.currentTimeMillisUnsafe()
  }

  add(name: string): void {
    if (this.#until.size >= namesMax) this.#until.clear()
    this.#until.set(name, this.#clock.currentTimeMillisUnsafe() + fundedMillis)
  }
}
