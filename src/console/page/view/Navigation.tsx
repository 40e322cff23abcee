import { type ComponentChildren, createContext } from "preact"
import { useCallback, useContext, useEffect, useState } from "preact/hooks"
import { parseView, roomAt, type Rooms } from "./Rooms.ts"
import { formatView, homeView, type View } from "./View.ts"

/** The view in the address bar, and how to go to another. */
export interface Navigation {
  readonly view: View
  /** `replace`: without a step of its own in the history */
  go(to: View, replace?: boolean): void
}

const NavigationContext = createContext<Navigation>({ view: homeView, go: () => undefined })

export const useNavigation = (): Navigation => useContext(NavigationContext)

interface NavigationProviderProps {
  readonly rooms: Rooms
  readonly children: ComponentChildren
}

export const NavigationProvider = ({ children, rooms }: NavigationProviderProps) => {
  const [view, setView] = useState(() => parseView(rooms, location.search))

  useEffect(() => {
    const onPop = (): void => setView(parseView(rooms, location.search))
    addEventListener("popstate", onPop)
    return () => removeEventListener("popstate", onPop)
  }, [rooms])

  const go = useCallback(
    (to: View, replace = false): void => {
      const before = parseView(rooms, location.search)
      const address = formatView(to)
      if (replace || address === formatView(before)) history.replaceState(null, "", address)
      else history.pushState(null, "", address)
      const { item = "" } = roomAt(rooms, to.room).page
      if (before.room !== to.room || before.params[item] !== to.params[item]) scrollTo(0, 0)
      setView(to)
    },
    [rooms]
  )

  return <NavigationContext.Provider value={{ view, go }}>{children}</NavigationContext.Provider>
}

interface ViewLinkProps {
  readonly to: View
  readonly replace?: boolean
  readonly class?: string
  /** this is the view, or a part of it, that is open */
  readonly isCurrent?: boolean
  readonly title?: string
  readonly children: ComponentChildren
}

/** A link to a view: an ordinary one to the browser (a new tab, Enter, a long press), without loading the page anew. */
export const ViewLink = ({ children, isCurrent = false, replace = false, to, ...rest }: ViewLinkProps) => {
  const { go } = useNavigation()
  const onClick = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(to, replace)
  }
  return (
    <a href={formatView(to)} onClick={onClick} aria-current={isCurrent ? "true" : undefined} {...rest}>
      {children}
    </a>
  )
}
