import { useEffect, useState } from "preact/hooks"
import { Refused } from "./Refused.ts"
import { useSession } from "./Session.ts"
import { whenVisible } from "./WhenVisible.ts"

export interface Answer<A> {
  /** the last answer: while another one is on its way, that of the selection before */
  readonly data: A | undefined
  /** `data` is of an earlier selection, and is shown dimmed */
  readonly isOld: boolean
  readonly refused: Refused | undefined
}

interface State<A> {
  readonly path: string | undefined
  readonly data: A | undefined
  readonly refused: Refused | undefined
}

/**
 * The answer to a GET, asked again every `refreshMillis` while the tab is visible, after a passing failure (429, 503,
 * no connection), and when `since` changes. A new path cancels the request under way: answers never come out of order.
 */
export const useAnswer = <A>(
  path: string | undefined,
  refreshMillis?: number,
  since?: unknown
): Answer<A> => {
  const { ask, hasKey, onTrouble, onUnknownKey } = useSession()
  const [state, setState] = useState<State<A>>({ path: undefined, data: undefined, refused: undefined })

  useEffect(() => {
    if (path === undefined) return
    const controller = new AbortController()
    const { signal } = controller

    const load = async (): Promise<void> => {
      try {
        const data = await ask<A>(path, { signal })
        setState({ path, data, refused: undefined })
        onTrouble(path, undefined)
        if (refreshMillis !== undefined) whenVisible(refreshMillis, load, signal)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Refused)) throw error
        if (error.status === 401 && hasKey) return onUnknownKey()
        setState((before) => ({ ...before, refused: error }))
        onTrouble(path, error)
        whenVisible(error.retryMillis, load, signal)
      }
    }
    void load()
    return () => {
      controller.abort()
      onTrouble(path, undefined)
    }
  }, [path, refreshMillis, since, ask, hasKey, onTrouble, onUnknownKey])

  return { data: state.data, isOld: state.path !== path, refused: state.refused }
}
