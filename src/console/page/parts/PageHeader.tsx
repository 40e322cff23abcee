import type { ComponentChildren } from "preact"
import { ViewLink } from "../view/Navigation.tsx"
import type { PagedRoom } from "../view/Rooms.ts"
import { homeView, type View } from "../view/View.ts"

interface PageHeaderProps {
  /** the rooms that are open to the user, and the one that is shown */
  readonly doors: ReadonlyArray<PagedRoom>
  readonly open: PagedRoom
  /** how the rooms are, in a word */
  readonly light: ComponentChildren
  readonly account: ComponentChildren
}

const viewOf = ({ page }: PagedRoom): View => ({ room: page.path, params: {} })

export const PageHeader = ({ account, doors, light, open }: PageHeaderProps) => (
  <>
    <SkipLink />
    <header class="page-header">
      <ViewLink to={doors[0] === undefined ? homeView : viewOf(doors[0])} class="wordmark">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="4" />
          <path d="M4 12V8M8 12V4M12 12V6.500" />
        </svg>
        Signalbox
      </ViewLink>
      <nav aria-label="Console">
        {light}
        {doors.map((room) => (
          <ViewLink key={room.name} to={viewOf(room)} isCurrent={room === open}>
            {room.page.title}
          </ViewLink>
        ))}
        <a href="/docs">API</a>
      </nav>
      {account}
    </header>
  </>
)

/** Skips the head of the page, for keyboard users; the address bar belongs to the view and stays as it is. */
const SkipLink = () => (
  <a
    href="#main"
    class="skip"
    onClick={(event) => {
      event.preventDefault()
      document.getElementById("main")?.focus()
    }}
  >
    Skip to the content
  </a>
)
