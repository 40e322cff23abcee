import type { OwnSubscription } from "#schemas/llm/Subscription.ts"
import { useCallback, useMemo, useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { Heading } from "../parts/Heading.tsx"
import type { Room } from "../view/Rooms.ts"
import { CreditsPanel } from "./CreditsPanel.tsx"
import { type Credits, fundsOf } from "./Funds.ts"
import { Playground } from "./Playground.tsx"
import { UsagePanel } from "./UsagePanel.tsx"
import "./Llm.css"

const refreshMillis = 60_000

/** Models: a place to try them, the credits left, and the usage. */
const Models = () => {
  // Raised when a completion is over: its cost is asked for again.
  const [since, setSince] = useState(0)
  const onOver = useCallback(() => setSince((before) => before + 1), [])
  const { data: credits, refused } = useAnswer<Credits>("/api/v1/credits", refreshMillis, { since })
  const { data: subscription } = useAnswer<OwnSubscription>("/api/v1/subscription", refreshMillis, { since })
  const funds = useMemo(() => {
    if (credits !== undefined) return fundsOf(credits, subscription)
    // If the funds are not known, the first model is a free one.
    return refused === undefined ? undefined : { creditsUsd: 0, hasPlan: false }
  }, [credits, subscription, refused])
  return (
    <div class="models">
      <Heading>Models</Heading>
      <Playground funds={funds} onOver={onOver} />
      <CreditsPanel credits={credits} onAdded={onOver} />
      <UsagePanel since={since} />
    </div>
  )
}

export const room: Room = {
  name: "llm",
  tile: { order: 2, title: "Models", purpose: "completions and credits", components: ["catalogue", "calls"] },
  page: {
    path: "models",
    title: "Models",
    order: 2,
    params: ["window", "usage"],
    Page: Models,
    probe: { path: "/api/v1/models?limit=1&include_collections=false" }
  }
}
