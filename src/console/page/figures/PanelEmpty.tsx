import { useNavigation } from "../view/Navigation.tsx"
import type { FilterName } from "../view/View.ts"

/** The text of a list without rows, with the next step if there is one. */
export const PanelEmpty = ({ dimension }: { readonly dimension: FilterName }) => {
  const { view } = useNavigation()
  if (Object.keys(view.filters).length > 0) return <p class="hint">Nothing passes the filters.</p>
  if (dimension === "event") {
    return (
      <p class="hint">
        No goals yet. Call <code>beacon("Signup")</code> where one is reached, or send an event with a{" "}
        <code>name</code> from your server.
      </p>
    )
  }
  if (dimension === "campaign") {
    return (
      <p class="hint">
        No campaigns. Links that end in <code>?utm_campaign=…</code> are listed here.
      </p>
    )
  }
  return <p class="hint">Nothing in this period.</p>
}
