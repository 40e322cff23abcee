interface Timer {
  readonly at: number
  readonly run: () => void
}

/** A clock that the test moves, and the timers that wait for it. */
export class VirtualClock {
  now: number
  #timers: ReadonlyArray<Timer> = []

  constructor(now: number) {
    this.now = now
  }

  readonly later = (millis: number, run: () => void): (() => void) => {
    const timer = { at: this.now + millis, run }
    this.#timers = [...this.#timers, timer]
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** Lets time pass up to an instant; earlier timers run at their own. */
  goTo(millis: number): void {
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= millis).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.#timers = this.#timers.filter((other) => other !== due)
      this.now = Math.max(this.now, due.at)
      due.run()
    }
    this.now = millis
  }
}
