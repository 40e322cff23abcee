import { useEffect, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import type { AgentSession, AgentSessionDetail, TranscriptEntry } from "../api/Contract.ts"
import { useSession } from "../api/Session.ts"
import { whenVisible } from "../api/WhenVisible.ts"
import { noPages, withPage } from "./Pages.ts"

export interface Transcript {
  readonly session: AgentSession
  readonly entries: ReadonlyArray<TranscriptEntry>
}

export interface TranscriptState {
  readonly transcript: Transcript | undefined
  readonly refused: Refused | undefined
}

/** A working session changes every second; for others a look now and then is enough. */
const refreshMillis = (session: AgentSession): number | undefined => {
  if (session.status === "ended") return undefined
  return session.status === "running" || session.status === "starting" ? 1_500 : 3_000
}

/** A session and its transcript, page by page; new entries are added while the tab is visible. `since`: ask now. */
export const useTranscript = (id: string, since: number): TranscriptState => {
  const { ask, hasKey, onTrouble, onUnknownKey } = useSession()
  const [state, setState] = useState<TranscriptState>({ transcript: undefined, refused: undefined })

  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let pages = noPages

    const load = async (): Promise<void> => {
      const query = pages.after === undefined ? "limit=500" : `limit=500&after=${pages.after}`
      const path = `/api/v1/agent/sessions/${encodeURIComponent(id)}?${query}`
      try {
        const { transcript: page, ...session } = await ask<AgentSessionDetail>(path, { signal })
        const read = withPage(pages, page)
        pages = read.pages
        setState({
          transcript: { session, entries: [...pages.settled, ...pages.last] },
          refused: undefined
        })
        onTrouble(id, undefined)
        if (read.isMore) return load()
        const millis = refreshMillis(session)
        if (millis !== undefined) whenVisible(millis, load, signal)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Refused)) throw error
        if (error.status === 401 && hasKey) return onUnknownKey()
        setState((before) => ({ ...before, refused: error }))
        onTrouble(id, error.status === 404 ? undefined : error)
        whenVisible(error.retryMillis, load, signal)
      }
    }
    void load()
    return () => {
      controller.abort()
      onTrouble(id, undefined)
    }
  }, [id, since, ask, hasKey, onTrouble, onUnknownKey])

  return state
}
