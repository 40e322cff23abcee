import { useRef } from "preact/hooks"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { type FilterName, filterNames, withoutFilter } from "../view/View.ts"
import { dimensionWords, valueLabel } from "./Labels.ts"

/** The filters that hold, together; each can be removed. */
export const FilterChips = () => {
  const { go, view } = useNavigation()
  const place = useRef<HTMLDivElement>(null)
  const remove = (name: FilterName): void => {
    go(withoutFilter(view, name))
    // The chip goes with its filter; the keyboard focus stays in its place.
    place.current?.focus({ preventScroll: true })
  }
  const active = filterNames.flatMap((name) => {
    const value = view.filters[name]
    return value === undefined ? [] : [{ name, label: valueLabel(name, value) }]
  })
  return (
    <div ref={place} class="chips-place" tabIndex={-1}>
      {active.length > 0 && (
        <ul class="chips" aria-label="Filters">
          {active.map(({ label, name }) => (
            <li key={name}>
              <Chip name={dimensionWords[name].one} value={label} onRemove={() => remove(name)} />
            </li>
          ))}
          {active.length > 1 && (
            <li>
              <ViewLink to={{ ...view, filters: {} }}>Remove all</ViewLink>
            </li>
          )}
        </ul>
      )}
    </div>
  )
}

interface ChipProps {
  readonly name: string
  readonly value: string
  onRemove(): void
}

const Chip = ({ name, onRemove, value }: ChipProps) => (
  <button type="button" class="chip" onClick={onRemove}>
    <span class="chip-name">{name}</span> <span class="chip-value">{value}</span>{" "}
    <span class="unseen">remove the filter</span>
    <span class="chip-cross" aria-hidden="true">
      ×
    </span>
  </button>
)
