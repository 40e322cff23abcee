import { useState } from "preact/hooks"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { periodOf, presets, withPeriod } from "./SiteParams.ts"

/** Chooses the period: one of the usual ones, or dates. */
export const PeriodBar = () => {
  const { view } = useNavigation()
  const [isChoosing, setChoosing] = useState(false)
  const period = periodOf(view)
  const isCustom = period.name === "custom"
  return (
    <nav class="periods" aria-label="Period">
      <ul>
        {presets.map(({ long, name, short }) => (
          <li key={name}>
            <ViewLink to={withPeriod(view, { name })} isCurrent={period.name === name}>
              <span class="long">{long}</span>
              <span class="short" aria-hidden="true">
                {short}
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
  const period = periodOf(view)
  const [dates, setDates] = useState(
    period.name === "custom"
      ? { from: period.from, to: period.to }
      : { from: isoDay(Date.now() - 13 * dayMillis), to: isoDay(Date.now()) }
  )
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    onDone()
    go(withPeriod(view, { name: "custom", ...dates }))
  }
  const date = (name: "from" | "to") => ({
    type: "date" as const,
    required: true,
    value: dates[name],
    onInput: (event: { readonly currentTarget: HTMLInputElement }): void =>
      setDates({ ...dates, [name]: event.currentTarget.value })
  })
  return (
    <form class="dates" onSubmit={onSubmit}>
      <label>
        From <input {...date("from")} max={dates.to} />
      </label>
      <label>
        to <input {...date("to")} min={dates.from} />
      </label>
      <button type="submit">Show</button>
    </form>
  )
}
