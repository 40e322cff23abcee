/** The time that a model may have been thinking without visible output. */
export class UnseenTime {
  readonly #askedAt = Date.now()
  /** epoch milliseconds of the first content; 0: none yet */
  firstTokenAt = 0
  /** epoch milliseconds at which the client went away; 0: it is there */
  leftAt = 0

  /** until the first content, or until the client left where there was none */
  get millis(): number {
    return Math.max(0, (this.firstTokenAt || this.leftAt || Date.now()) - this.#askedAt)
  }
}
