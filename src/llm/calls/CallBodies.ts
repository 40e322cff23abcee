import { addressBlock } from "#src/front/ClientAddress.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Limits } from "#src/Limits.ts"

/** The body of one call, as far as it is still held. */
export class HeldBody {
  readonly #shares: FairShares
  readonly #owner: string
  #bytes: number

  constructor(shares: FairShares, owner: string, bytes: number) {
    this.#shares = shares
    this.#owner = owner
    this.#bytes = bytes
  }

  /** Gives back all but so many bytes. */
  keep(bytes: number): void {
    if (bytes >= this.#bytes) return
    this.#shares.release(this.#owner, this.#bytes - bytes)
    this.#bytes = bytes
  }
}

/** The bodies of calls under way: each user has a share of their memory, and each address without a known key. */
export class CallBodies {
  readonly #known: FairShares
  readonly #strangers: FairShares

  constructor({ callBodiesBytes, callStrangersBytes }: Limits) {
    this.#known = new FairShares(callBodiesBytes)
    this.#strangers = new FairShares(callStrangersBytes)
  }

  /** undefined: there is no room in the user's share */
  ofUser(userId: string, bytes: number): HeldBody | undefined {
    return this.#known.take(userId, bytes) ? new HeldBody(this.#known, userId, bytes) : undefined
  }

  /** for a call whose key has to be looked up first */
  ofStranger(address: string, bytes: number): HeldBody | undefined {
    const owner = addressBlock(address)
    return this.#strangers.take(owner, bytes) ? new HeldBody(this.#strangers, owner, bytes) : undefined
  }
}
