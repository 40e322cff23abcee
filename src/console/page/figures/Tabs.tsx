import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import type { PanelName, View } from "../view/View.ts"

interface TabsProps {
  readonly panel: PanelName
  /** the panel's subject, for readers who do not see the position of the tabs */
  readonly title: string
  /** the first one is open where the address bar names none */
  readonly tabs: ReadonlyArray<{ readonly name: string; readonly label: string }>
  readonly open: string
}

/** Chooses the list of a panel. It is part of the address, but no step of its own in the history. */
export const Tabs = ({ open, panel, tabs, title }: TabsProps) => {
  const { view } = useNavigation()
  const viewOf = (name: string): View => {
    const { [panel]: _before, ...others } = view.tabs
    return { ...view, tabs: name === tabs[0]?.name ? others : { ...others, [panel]: name } }
  }
  return (
    <nav aria-label={`${title} by`}>
      <ul class="tabs">
        {tabs.map(({ label, name }) => (
          <li key={name}>
            <ViewLink to={viewOf(name)} replace isCurrent={name === open}>
              {label}
            </ViewLink>
          </li>
        ))}
      </ul>
    </nav>
  )
}
