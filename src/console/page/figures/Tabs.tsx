import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { withParams } from "../view/View.ts"

interface TabsProps {
  /** the name in the address */
  readonly param: string
  /** for readers who do not see the position of the tabs */
  readonly label: string
  readonly tabs: ReadonlyArray<{ readonly name: string; readonly label: string }>
  readonly open: string
  /** the default, which the address does not name; the first if absent */
  readonly usual?: string
  /** another look, and a step of its own in the history */
  readonly isPeriod?: boolean
}

/** Chooses a list or a period. It is part of the address. */
export const Tabs = ({ isPeriod = false, label, open, param, tabs, usual = tabs[0]?.name }: TabsProps) => {
  const { view } = useNavigation()
  return (
    <nav class={isPeriod ? "periods" : undefined} aria-label={label}>
      <ul class={isPeriod ? undefined : "tabs"}>
        {tabs.map((tab) => (
          <li key={tab.name}>
            <ViewLink
              to={withParams(view, { [param]: tab.name === usual ? undefined : tab.name })}
              replace={!isPeriod}
              isCurrent={tab.name === open}
            >
              {tab.label}
            </ViewLink>
          </li>
        ))}
      </ul>
    </nav>
  )
}
