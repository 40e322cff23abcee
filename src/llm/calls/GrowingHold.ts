import type { Admission } from "#src/llm/ledger/Admission.ts"

/**
 * Keeps the hold of a stream ahead of what it has produced, where its length is not known beforehand. A hold that covers
 * all that a stream may say never grows, and an upstream that goes on beyond it is not heard to its end.
 */
export class GrowingHold {
  readonly #admission: Admission
  readonly #stepTokens: number
  readonly #isOpenEnded: boolean
  #covered: number
  #isGrowing = false
  #isExhausted = false

  constructor(admission: Admission, isOpenEnded: boolean, stepTokens: number) {
    this.#admission = admission
    this.#isOpenEnded = isOpenEnded
    this.#stepTokens = stepTokens
    this.#covered = admission.outputTokens
  }

  get isFixed(): boolean {
    return !this.#isOpenEnded
  }

  /** output tokens that are paid */
  get covered(): number {
    return this.#covered
  }

  /**
   * Whether so many tokens are more than can be paid. Asked at every piece: when half a step is left more is asked for,
   * and the stream goes on meanwhile.
   */
  isUsedUp(tokens: number): boolean {
    if (this.isFixed) return tokens >= this.#covered + slackOf(this.#covered)
    if (this.#isExhausted) return tokens >= this.#covered
    if (!this.#isGrowing && tokens > this.#covered - this.#stepTokens / 2) void this.#grow(tokens)
    return false
  }

  async #grow(tokens: number): Promise<void> {
    this.#isGrowing = true
    const wanted = Math.max(tokens, this.#covered) + this.#stepTokens
    const covered = await this.#admission.extend(wanted)
    this.#isGrowing = false
    this.#isExhausted = covered < wanted
    this.#covered = covered
  }
}

/** The model may count a text otherwise than this platform does. */
const slackOf = (covered: number): number => Math.max(16, Math.ceil(covered / 4))
