import { useEffect, useState } from "preact/hooks"
import type { Ready, Unready } from "#schemas/system/SystemApi.ts"
import { onSilence } from "../api/Silence.ts"
import { whenVisible } from "../api/WhenVisible.ts"

/** `/readyz`, with 200 and with 503 alike. */
export type Readiness = Pick<typeof Ready.Type | Unready, "status" | "components">
export type RoomComponent = Readiness["components"][string]

export interface ReadinessState {
  /** the present answer of `/readyz`; undefined before the first one */
  readonly now: Readiness | "silent" | undefined
  /** its last answer, kept while it is silent */
  readonly last: Readiness | undefined
}

const refreshMillis = 15_000

/** A server that did not answer is asked again sooner. */
const silentRefreshMillis = 5_000

/** The report is made in milliseconds: a server that has not sent it after so long does not answer. */
const answerMillis = 10_000

/** The answer of `/readyz`, asked while the tab is visible, and at once when another request had no answer. */
export const useReadiness = (): ReadinessState => {
  const [state, setState] = useState<ReadinessState>({ now: undefined, last: undefined })
  useEffect(() => {
    const page = new AbortController()
    let wait = new AbortController()
    let isAsking = false
    const load = async (): Promise<void> => {
      if (isAsking) return
      isAsking = true
      wait.abort()
      const report = await readReadiness(page.signal)
      isAsking = false
      if (page.signal.aborted) return
      setState(({ last }) => ({ now: report, last: report === "silent" ? last : report }))
      wait = new AbortController()
      whenVisible(report === "silent" ? silentRefreshMillis : refreshMillis, load, wait.signal)
    }
    onSilence(load, page.signal)
    void load()
    return () => {
      page.abort()
      wait.abort()
    }
  }, [])
  return state
}

/** A server that is not ready says so with 503 and the same body. */
const readReadiness = async (page: AbortSignal): Promise<Readiness | "silent"> => {
  const request = new AbortController()
  const timer = setTimeout(() => request.abort(), answerMillis)
  try {
    const signal = AbortSignal.any([page, request.signal])
    const response = await fetch("/readyz", { signal, cache: "no-store", credentials: "omit" })
    return (await response.json()) as Readiness
  } catch {
    // No connection, no answer in time, or a proxy's page in the server's place: it is shown, and tried again.
    return "silent"
  } finally {
    clearTimeout(timer)
  }
}
