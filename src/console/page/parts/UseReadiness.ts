import { useEffect, useState } from "preact/hooks"
import type { Readiness } from "../api/Contract.ts"
import { whenVisible } from "../api/WhenVisible.ts"

const refreshMillis = 15_000

/** What `/readyz` says, while the tab is seen; undefined until it has said anything. */
export const useReadiness = (): Readiness | "silent" | undefined => {
  const [readiness, setReadiness] = useState<Readiness | "silent">()
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const load = async (): Promise<void> => {
      const report = await readReadiness(signal)
      if (signal.aborted) return
      setReadiness(report)
      whenVisible(refreshMillis, load, signal)
    }
    void load()
    return () => controller.abort()
  }, [])
  return readiness
}

/** A server that is not ready says so with 503 and the same body. */
const readReadiness = async (signal: AbortSignal): Promise<Readiness | "silent"> => {
  try {
    const response = await fetch("/readyz", { signal, cache: "no-store", credentials: "omit" })
    return (await response.json()) as Readiness
  } catch {
    // No connection, or a proxy's page in the server's place: the reader is told, and it is tried again.
    return "silent"
  }
}
