import { type Effect, Schema } from "effect"
import type { Limits } from "#src/Limits.ts"

/** A kind of jobs, by a name of its own in all of the server. Its lanes are worked on side by side, each in order. */
export interface Queue<P> {
  readonly name: string
  readonly payload: Schema.Codec<P, unknown>
  /** after so many failed attempts a job is dead; `jobAttemptsMax` where it is undefined */
  readonly attemptsMax: number | undefined
  /** its ended jobs are the room's to delete */
  readonly isKept: boolean
}

interface QueueOptions {
  readonly attemptsMax?: number
  readonly isKept?: boolean
}

const namePattern = /^[a-z][a-z0-9-]{0,62}$/

/** Throws for a name that is not lower-case letters, digits and hyphens, 63 of them at most. */
export const queue = <P>(
  name: string,
  payload: Schema.Codec<P, unknown>,
  { attemptsMax, isKept = false }: QueueOptions = {}
): Queue<P> => {
  if (!namePattern.test(name)) throw new Error(`${name} is no name of a queue`)
  return { name, payload, attemptsMax, isKept }
}

/** A job that is to be done. */
export interface NewJob<P> {
  /** the order that it belongs to, such as a recipient or a site: 1 to 200 characters */
  readonly lane: string
  readonly payload: P
  /** where a job of this id waits already, this one is left out; 1 to 200 characters, made up where it is absent */
  readonly id?: string
  /** the earliest instant; it holds up the jobs behind it, so what waits for an instant has a lane of its own */
  readonly notBefore?: Date
}

/** A job whose turn it is. */
export interface Job<P> {
  readonly id: string
  readonly lane: string
  readonly payload: P
  /** counted from 1 */
  readonly attempt: number
  /** an earlier attempt began and its end is not known: it may have had its effect */
  readonly repeated: boolean
  readonly offeredAt: Date
}

/** How an attempt ended. Whichever it is, the lane may rest afterwards. */
export type Outcome =
  | {
      readonly _tag: "Done" | "Dead"
      readonly error: string | null
      readonly restMillis: number
      /** carried out in the transaction that ends the job: both are there or neither is */
      readonly change: Effect.Effect<unknown, unknown> | undefined
    }
  | {
      /** `Later` is no failure: attempts count anew. `Withdrawn`, `Busy`: there was no attempt, and it does not count. */
      readonly _tag: "Again" | "Later" | "Withdrawn" | "Busy"
      readonly error: string | null
      readonly restMillis: number
    }

export const done = (change?: Effect.Effect<unknown, unknown>, restMillis = 0): Outcome => ({
  _tag: "Done",
  error: null,
  restMillis,
  change
})

/** The same job after a pause. */
export const again = (error: string, afterMillis: number): Outcome => ({
  _tag: "Again",
  error,
  restMillis: afterMillis
})

export const later = (afterMillis: number): Outcome => ({
  _tag: "Later",
  error: null,
  restMillis: afterMillis
})

/** Its turn came too early, and nothing was done: the same job after a pause, with what is known of earlier attempts. */
export const withdrawn = (afterMillis: number): Outcome => ({
  _tag: "Withdrawn",
  error: null,
  restMillis: afterMillis
})

/** As `withdrawn`, since this server has no attempt to spare: its lane is late if that goes on. */
export const busy = (afterMillis: number): Outcome => ({
  _tag: "Busy",
  error: null,
  restMillis: afterMillis
})

/** No further attempt would help: it is kept for someone to look at, and the lane goes on. */
export const dead = (error: string, change?: Effect.Effect<unknown, unknown>): Outcome => ({
  _tag: "Dead",
  error,
  restMillis: 0,
  change
})

/** The pause after so many failed attempts: it doubles, and jobs that failed together come again apart. */
export const backoffMillis = (
  { jobRetryMaxMillis: most, jobRetryMinMillis: least }: Limits,
  attempts: number
): number => Math.min(least * 2 ** (attempts - 1), most) * (0.8 + 0.4 * Math.random())
