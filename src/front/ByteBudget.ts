import { FairShares } from "#src/infra/shares/FairShares.ts"
import { addressBlock } from "./ClientAddress.ts"
import type { FrontLimits } from "./FrontOptions.ts"
import type { BodyAdmission, HotRequest, HotRoute } from "./HotRoute.ts"

/** The owner that the bytes of one body count for. */
export interface BodyOwner {
  readonly shares: FairShares
  readonly name: string
}

/**
 * The bytes of hot bodies that have not arrived whole, over all connections. Known senders and strangers have budgets of
 * their own, so that no number of strangers takes anything from a known one.
 */
export class ByteBudget {
  readonly #known: FairShares
  readonly #strangers: FairShares

  constructor({ hotBodiesBytes, strangersBodiesBytes }: FrontLimits) {
    this.#known = new FairShares(hotBodiesBytes)
    this.#strangers = new FairShares(strangersBodiesBytes)
  }

  /** The owner of the coming body; undefined where the route has answered already. */
  ownerOf(
    route: Pick<HotRoute, "admit">,
    request: HotRequest,
    refuse: (answer: Extract<BodyAdmission, { _tag: "Refused" }>["answer"]) => void
  ): BodyOwner | undefined {
    const admission = route.admit?.(request) ?? { _tag: "Unknown" }
    switch (admission._tag) {
      case "Known":
        return { shares: this.#known, name: admission.userId }
      case "Unknown":
        return { shares: this.#strangers, name: addressBlock(request.remoteAddress) }
      case "Refused":
        refuse(admission.answer)
        return undefined
    }
  }
}
