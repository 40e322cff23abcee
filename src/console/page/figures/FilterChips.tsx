import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { filterNames, withoutFilter } from "../view/View.ts"
import { dimensionWords, valueLabel } from "./Labels.ts"

/** The filters that hold, together; each can be removed. */
export const FilterChips = () => {
  const { go, view } = useNavigation()
  const active = filterNames.flatMap((name) => {
    const value = view.filters[name]
    return value === undefined ? [] : [{ name, label: valueLabel(name, value) }]
  })
  if (active.length === 0) return null
  return (
    <ul class="chips" aria-label="Filters">
      {active.map(({ label, name }) => (
        <li key={name}>
          <button
            type="button"
            class="chip"
            aria-label={`Remove the filter ${dimensionWords[name].one}: ${label}`}
            onClick={() => go(withoutFilter(view, name))}
          >
            <span class="chip-name">{dimensionWords[name].one}</span>
            <span class="chip-value">{label}</span>
            <span class="chip-cross" aria-hidden="true">
              ×
            </span>
          </button>
        </li>
      ))}
      {active.length > 1 && (
        <li>
          <ViewLink to={{ ...view, filters: {} }}>Remove all</ViewLink>
        </li>
      )}
    </ul>
  )
}
