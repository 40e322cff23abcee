import { useCallback, useEffect, useState } from "preact/hooks"
import { useFocusOnce } from "../parts/UseFocusOnce.ts"
import { CreditsPanel } from "./CreditsPanel.tsx"
import { Playground } from "./Playground.tsx"
import { UsagePanel } from "./UsagePanel.tsx"

/** Models: a place to try them, what is left to spend, and what was used. */
export const ModelsRoom = () => {
  const heading = useFocusOnce()
  // Raised when a completion is over: what it cost is asked for again.
  const [since, setSince] = useState(0)
  const onOver = useCallback(() => setSince((before) => before + 1), [])
  useEffect(() => {
    document.title = "Models · Signalbox"
    return () => {
      document.title = "Signalbox"
    }
  }, [])
  return (
    <div class="models">
      <h1 ref={heading} tabIndex={-1}>
        Models
      </h1>
      <Playground onOver={onOver} />
      <CreditsPanel since={since} />
      <UsagePanel since={since} />
    </div>
  )
}
