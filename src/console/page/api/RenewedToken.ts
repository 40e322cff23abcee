import { Refused } from "./Refused.ts"

/** Gives the token or key of a request; in place of one that the server has just not taken, another, or undefined. */
export type Bearer = (refused?: string) => Promise<string | undefined>

/** A token as the server gave it. */
export interface Token {
  readonly text: string
  /** how long the server takes it, by the server's own clock */
  readonly lifeMillis: number
}

/** The part of its life after which a token is renewed: the rest is for requests under way, and for a server that is away. */
const usedPart = 0.8

/**
 * Holds a token and renews it when a request needs another: near the end of its life, after a sleep or a jump of the
 * clock, and when the server did not take it. Requests that come together share one renewal. No timer runs.
 */
export const renewedToken = (renew: () => Promise<Token>, now: () => number = Date.now): Bearer => {
  let held: (Token & { readonly sinceMillis: number }) | undefined
  let underWay: Promise<string> | undefined

  const isWithin = (part: number): boolean => {
    if (held === undefined) return false
    const age = now() - held.sinceMillis
    return age >= 0 && age < held.lifeMillis * part
  }
  const fetchAnother = async (): Promise<string> => {
    try {
      // The server counts from a later moment.
      const sinceMillis = now()
      held = { ...(await renew()), sinceMillis }
      return held.text
    } finally {
      underWay = undefined
    }
  }
  return async (refused) => {
    const isRefused = refused !== undefined && held?.text === refused
    if (held !== undefined && !isRefused && isWithin(usedPart)) return held.text
    try {
      return await (underWay ??= fetchAnother())
    } catch (error) {
      // The server is away for a moment, and the token has some life left.
      const isEnd = error instanceof Refused && error.status === 401
      if (held !== undefined && !isRefused && !isEnd && isWithin(1)) return held.text
      throw error
    }
  }
}
