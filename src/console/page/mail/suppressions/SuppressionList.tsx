import type { Suppression } from "#schemas/mail/Suppression.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { formatCount, formatInstant } from "../../figures/Format.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useCount } from "../../parts/UseCount.ts"
import { NewSuppression } from "./NewSuppression.tsx"
import { SuppressionFiles } from "./SuppressionFiles.tsx"

const path = "/api/v1/emails/suppressions"
const refreshMillis = 5_000
const shown = 50

type Listed = typeof Suppression.Encoded

interface Page {
  readonly suppressions: ReadonlyArray<Listed>
  readonly meta: { readonly total: number }
}

/** Addresses that mail does not go to: a form that adds one, a search, the list, and files of them. */
export const SuppressionList = () => {
  const [since, onChanged] = useCount()
  const [address, setAddress] = useState("")
  const [offset, setOffset] = useState(0)
  const query = new URLSearchParams({
    limit: String(shown),
    offset: String(offset),
    ...(address !== "" && { address })
  })
  const { data, isOld, refused } = useAnswer<Page>(`${path}?${query}`, refreshMillis, { since })
  const search = (words: string): void => {
    setAddress(words)
    setOffset(0)
  }
  return (
    <>
      <Heading tab="Mail">Suppressions</Heading>
      <p class="hint">
        Mail does not go to these addresses: they bounced, complained, unsubscribed, or were added here.
      </p>
      <NewSuppression onAdded={onChanged} />
      <section class="items" aria-labelledby="suppressions-title" aria-busy={data === undefined || isOld}>
        <h2 id="suppressions-title">List</h2>
        <Search onSearch={search} />
        {data === undefined && <Asking what="the suppressions" isRefused={refused !== undefined} />}
        {data?.suppressions.length === 0 && (
          <p class="hint">{address === "" ? "No address is suppressed." : `None holds for ${address}.`}</p>
        )}
        <ul aria-label="Suppressions">
          {data?.suppressions.map((suppression) => (
            <Row key={suppression.id} suppression={suppression} onRemoved={onChanged} />
          ))}
        </ul>
        {data !== undefined && <Steps offset={offset} total={data.meta.total} onStep={setOffset} />}
      </section>
      <SuppressionFiles path={`${path}.csv`} onAdded={onChanged} />
    </>
  )
}

const Search = ({ onSearch }: { onSearch(address: string): void }) => {
  const [typed, setTyped] = useState("")
  return (
    <form
      class="mail-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        onSearch(typed.trim())
      }}
    >
      <input
        type="search"
        aria-label="Search by address"
        placeholder="ada@example.org"
        maxLength={254}
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <button type="submit">Search</button>
    </form>
  )
}

const reasons: Readonly<Record<Listed["reason"], string>> = {
  hard_bounce: "bounced",
  complaint: "complained",
  manual: "added by hand",
  unsubscribe: "unsubscribed from bulk mail"
}

const Row = ({ onRemoved, suppression }: { readonly suppression: Listed; onRemoved(): void }) => {
  const { address, created_at, id, note, reason } = suppression
  return (
    <li>
      <span class="item-words">
        <strong>{address}</strong>{" "}
        <span class="item-facts hint">
          <span>{reasons[reason]}</span>
          {note !== null && note !== "" && <span>{note}</span>}
          <span>{formatInstant(created_at)}</span>
        </span>
      </span>
      <Dialog
        action="Remove"
        question={`Mail goes to ${address} again.`}
        yes="Remove it"
        run={async (ask) => {
          await ask(`${path}/${id}`, { method: "DELETE" })
          onRemoved()
        }}
      />
    </li>
  )
}

interface StepsProps {
  readonly offset: number
  readonly total: number
  onStep(offset: number): void
}

const Steps = ({ offset, onStep, total }: StepsProps) =>
  total > shown && (
    <div class="buttons">
      <button type="button" disabled={offset === 0} onClick={() => onStep(Math.max(0, offset - shown))}>
        Newer
      </button>
      <button type="button" disabled={offset + shown >= total} onClick={() => onStep(offset + shown)}>
        Older
      </button>
      <span class="hint">
        {formatCount(offset + 1)} to {formatCount(Math.min(offset + shown, total))} of {formatCount(total)}
      </span>
    </div>
  )
