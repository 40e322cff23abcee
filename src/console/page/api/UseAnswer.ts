import { useEffect, useState } from "preact/hooks"
import type { Ask } from "./Ask.ts"
import { Refused } from "./Refused.ts"
import { useSession } from "./Session.ts"
import { whenVisible } from "./WhenVisible.ts"

/** One read. Answers the milliseconds until the next; undefined: there is none. */
type Turn = (ask: Ask, signal: AbortSignal) => Promise<number | undefined>

export interface ReadOptions {
  /** a new value begins the reading anew */
  readonly since?: unknown
  /** a refusal that the reader handles, so that the page does not show it as trouble */
  readonly isExpected?: (refused: Refused) => boolean
}

/**
 * Reads again and again while the tab is visible, also after a passing failure (429, 503, no connection). A new `part` or
 * `since` cancels the turn under way and begins anew: answers never come out of order. Answers the last refusal.
 */
export const useTurns = (
  part: string | undefined,
  begin: () => Turn,
  { isExpected, since }: ReadOptions = {}
): Refused | undefined => {
  const { ask, isSignedIn, onTrouble, onSignedOut } = useSession()
  const [refused, setRefused] = useState<Refused>()

  useEffect(() => {
    if (part === undefined) return
    const controller = new AbortController()
    const { signal } = controller
    const turn = begin()

    const load = async (): Promise<void> => {
      try {
        const millis = await turn(ask, signal)
        setRefused(undefined)
        onTrouble(part, undefined)
        if (millis !== undefined) whenVisible(millis, load, signal)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Refused)) throw error
        if (error.status === 401 && isSignedIn) return onSignedOut()
        setRefused(error)
        onTrouble(part, isExpected?.(error) === true ? undefined : error)
        whenVisible(error.retryMillis, load, signal)
      }
    }
    void load()
    return () => {
      controller.abort()
      onTrouble(part, undefined)
    }
  }, [part, since, ask, isSignedIn, onTrouble, onSignedOut])
  return refused
}

export interface Answer<A> {
  /** the last answer: while another one is on its way, that of the selection before */
  readonly data: A | undefined
  /** `data` is of an earlier selection, and is shown dimmed */
  readonly isOld: boolean
  readonly refused: Refused | undefined
}

/** The answer to a GET, read again every `refreshMillis`. */
export const useAnswer = <A>(
  path: string | undefined,
  refreshMillis?: number,
  options?: ReadOptions
): Answer<A> => {
  const [state, setState] = useState<{ readonly path?: string | undefined; readonly data?: A }>({})
  const turn: Turn = async (ask, signal) => {
    setState({ path, data: await ask<A>(path ?? "", { signal }) })
    return refreshMillis
  }
  const refused = useTurns(path, () => turn, options)
  return { data: state.data, isOld: state.path !== path, refused }
}
