import type { AgentSession, AgentSessionDetail, TranscriptEntry } from "#schemas/agents/AgentSession.ts"
import { useState } from "preact/hooks"
import type { Refused } from "../api/Refused.ts"
import { useTurns } from "../api/UseAnswer.ts"
import { noPages, withPage } from "./Pages.ts"

export interface Transcript {
  readonly session: AgentSession
  readonly entries: ReadonlyArray<TranscriptEntry>
}

/** A working session changes every second; for others a look now and then is enough. */
const refreshMillis = (session: AgentSession): number | undefined => {
  if (session.status === "ended") return undefined
  return session.status === "running" || session.status === "starting" ? 1_500 : 3_000
}

export const isUnknown = ({ status }: Refused): boolean => status === 404

/** A session and its transcript, page by page; new entries are added while the tab is visible. `since`: ask now. */
export const useTranscript = (
  id: string,
  since: number
): { readonly transcript: Transcript | undefined; readonly refused: Refused | undefined } => {
  const [transcript, setTranscript] = useState<Transcript>()
  const refused = useTurns(
    id,
    () => {
      let pages = noPages
      return async (ask, signal) => {
        const query = pages.after === undefined ? "limit=500" : `limit=500&after=${pages.after}`
        const path = `/api/v1/agent/sessions/${encodeURIComponent(id)}?${query}`
        const { transcript: page, ...session } = await ask<typeof AgentSessionDetail.Type>(path, { signal })
        const read = withPage(pages, page)
        pages = read.pages
        setTranscript({ session, entries: [...pages.settled, ...pages.last] })
        return read.isMore ? 0 : refreshMillis(session)
      }
    },
    { since, isExpected: isUnknown }
  )
  return { transcript, refused }
}
