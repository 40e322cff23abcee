import { useCallback, useEffect, useMemo, useState } from "preact/hooks"
import { useFocusOnce } from "../parts/UseFocusOnce.ts"
import type { Credits, OwnSubscription } from "../api/Contract.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { CreditsPanel } from "./CreditsPanel.tsx"
import { fundsOf } from "./Funds.ts"
import { Playground } from "./Playground.tsx"
import { UsagePanel } from "./UsagePanel.tsx"

const refreshMillis = 60_000

/** Models: a place to try them, the credits left, and the usage. */
export const ModelsRoom = () => {
  const heading = useFocusOnce()
  // Raised when a completion is over: its cost is asked for again.
  const [since, setSince] = useState(0)
  const onOver = useCallback(() => setSince((before) => before + 1), [])
  const { data: credits, refused } = useAnswer<Credits>("/api/v1/credits", refreshMillis, since)
  const { data: subscription } = useAnswer<OwnSubscription>("/api/v1/subscription", refreshMillis, since)
  const funds = useMemo(() => {
    if (credits !== undefined) return fundsOf(credits, subscription)
    // If the funds are not known, the first model is a free one.
    return refused === undefined ? undefined : { creditsUsd: 0, hasPlan: false }
  }, [credits, subscription, refused])
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
      <Playground funds={funds} onOver={onOver} />
      <CreditsPanel credits={credits} onAdded={onOver} />
      <UsagePanel since={since} />
    </div>
  )
}
