import { useRef } from "preact/hooks"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { dimensionWords, valueLabel } from "./Labels.ts"
import { type FilterName, filterNames, withoutFilters } from "./SiteParams.ts"

/** The filters that hold, together; each can be removed. */
export const FilterChips = () => {
  const { go, view } = useNavigation()
  const place = useRef<HTMLDivElement>(null)
  const remove = (name: FilterName): void => {
    go(withoutFilters(view, [name]))
    // The chip goes with its filter; the keyboard focus stays in its place.
    place.current?.focus({ preventScroll: true })
  }
  const active = filterNames.flatMap((name) => {
    const value = view.params[name]
    return value === undefined ? [] : [{ name, label: valueLabel(name, value) }]
  })
  return (
    <div ref={place} class="chips-place" tabIndex={-1}>
      {active.length > 0 && (
        <ul class="chips" aria-label="Filters">
          {active.map(({ label, name }) => (
            <li key={name}>
              <button type="button" class="chip" onClick={() => remove(name)}>
                <span class="chip-name">{dimensionWords[name].one}</span>{" "}
                <span class="chip-value">{label}</span> <span class="unseen">remove the filter</span>
                <span class="chip-cross" aria-hidden="true">
                  ×
                </span>
              </button>
            </li>
          ))}
          {active.length > 1 && (
            <li>
              <ViewLink to={withoutFilters(view)}>Remove all</ViewLink>
            </li>
          )}
        </ul>
      )}
    </div>
  )
}
