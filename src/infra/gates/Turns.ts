export interface TurnsOptions {
  /** an attempt waits so long for one of those under way, where the host is no slower … */
  readonly turnMillis: number
  /** … else it is sent away until its turn, as the host's pace has it, for so long at most */
  readonly restMillis: number
}

/** No attempt now, but after so long. */
export interface Refusal {
  readonly restMillis: number
  /** as many are under way as may be; else the host rests, or the process stops */
  readonly isBusy: boolean
}

/** An attempt is taken to last so long until the first one has ended. */
const firstMeanMillis = 50
const newest = 0.2

/** The pace at which attempts of one kind end, and so the turns of those that were sent away: an owner's one behind the other. */
export class Turns {
  /** how long an attempt takes, of late */
  meanMillis = firstMeanMillis
  /** the last turn of each owner */
  private readonly last = new Map<string, number>()

  ended(millis: number): void {
    this.meanMillis += newest * (millis - this.meanMillis)
  }

  /** All who were sent away have had their turn. */
  areOver(now: number): boolean {
    for (const [owner, at] of this.last) if (at <= now) this.last.delete(owner)
    return this.last.size === 0
  }

  /** The next turn, where `most` attempts are made at once. */
  next(owner: string, now: number, most: number, { restMillis, turnMillis }: TurnsOptions): Refusal {
    const at = Math.min(
      Math.max(this.last.get(owner) ?? 0, now + turnMillis) + this.meanMillis / most,
      now + restMillis
    )
    this.last.set(owner, at)
    return { restMillis: at - now, isBusy: true }
  }
}
