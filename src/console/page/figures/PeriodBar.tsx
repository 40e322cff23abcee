import { useState } from "preact/hooks"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { type PresetName, presets } from "../view/View.ts"

/** With a short form for narrow screens. */
const words: Readonly<Record<PresetName, readonly [long: string, short: string]>> = {
  today: ["Today", "Today"],
  "24h": ["24 hours", "24 h"],
  "7d": ["7 days", "7 d"],
  "30d": ["30 days", "30 d"],
  "90d": ["90 days", "90 d"],
  "12mo": ["12 months", "12 mo"]
}

/** Chooses the period: one of the usual ones, or dates. */
export const PeriodBar = () => {
  const { view } = useNavigation()
  const [isChoosing, setChoosing] = useState(false)
  const isCustom = view.period.name === "custom"
  return (
    <nav class="periods" aria-label="Period">
      <ul>
        {presets.map((name) => (
          <li key={name}>
            <ViewLink to={{ ...view, period: { name } }} isCurrent={view.period.name === name}>
              <span class="long">{words[name][0]}</span>
              <span class="short" aria-hidden="true">
                {words[name][1]}
              </span>
            </ViewLink>
          </li>
        ))}
        <li>
          <button
            type="button"
            class="plain"
            aria-expanded={isChoosing || isCustom}
            aria-current={isCustom ? "true" : undefined}
            onClick={() => setChoosing(!isChoosing)}
          >
            Dates
          </button>
        </li>
      </ul>
      {(isChoosing || isCustom) && <DateRange onDone={() => setChoosing(false)} />}
    </nav>
  )
}

const dayMillis = 86_400_000
const isoDay = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

const DateRange = ({ onDone }: { onDone(): void }) => {
  const { go, view } = useNavigation()
  const { period } = view
  const chosen =
    period.name === "custom" ? period : { from: isoDay(Date.now() - 13 * dayMillis), to: isoDay(Date.now()) }
  const [from, setFrom] = useState(chosen.from)
  const [to, setTo] = useState(chosen.to)
  return (
    <form
      class="dates"
      onSubmit={(event) => {
        event.preventDefault()
        onDone()
        go({ ...view, period: { name: "custom", from, to } })
      }}
    >
      <label>
        From{" "}
        <input
          type="date"
          required
          value={from}
          max={to}
          onInput={(event) => setFrom(event.currentTarget.value)}
        />
      </label>
      <label>
        to{" "}
        <input
          type="date"
          required
          value={to}
          min={from}
          onInput={(event) => setTo(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Show</button>
    </form>
  )
}
