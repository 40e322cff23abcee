import type { Credits } from "./Funds.ts"
import { useState } from "preact/hooks"
import { formatUsd } from "../figures/Format.ts"
import { Tile } from "../parts/Tile.tsx"
import { MoreCredits } from "./MoreCredits.tsx"

interface CreditsPanelProps {
  readonly credits: Credits | undefined
  onAdded(): void
}

/** The owner's credits, and the key's spending out of its own limit. */
export const CreditsPanel = ({ credits: data, onAdded }: CreditsPanelProps) => {
  const limit = data?.key.spend_limit_usd ?? null
  return (
    <section class="credits" aria-labelledby="credits-title" aria-busy={data === undefined}>
      <h2 id="credits-title">Credits</h2>
      <dl class="tiles">
        <Tile name="balance" label="Balance" value={data && formatUsd(data.balance_usd)} />
        <Tile name="spent" label="Spent" value={data && formatUsd(data.lifetime_spent_usd)} />
        <Tile name="topped-up" label="Topped up" value={data && formatUsd(data.lifetime_topped_up_usd)} />
        <Tile
          name="key-spent"
          label="Spent with this key"
          value={data && formatUsd(data.key.spent_usd)}
          note={data === undefined ? "" : limit === null ? "no limit of its own" : `of ${formatUsd(limit)}`}
        />
      </dl>
      {data !== undefined && <Source isOpenFirst={data.balance_usd <= 0} onAdded={onAdded} />}
    </section>
  )
}

interface SourceProps {
  readonly isOpenFirst: boolean
  onAdded(): void
}

const Source = ({ isOpenFirst, onAdded }: SourceProps) => {
  // Later the reader opens and closes it: the outcome of a top-up is shown inside.
  const [isOpen] = useState(isOpenFirst)
  return (
    <details open={isOpen}>
      <summary>Where credits come from</summary>
      <MoreCredits onAdded={onAdded} />
    </details>
  )
}
