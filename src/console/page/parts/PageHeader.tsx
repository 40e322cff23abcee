import type { ComponentChildren } from "preact"
import { ViewLink } from "../view/Navigation.tsx"
import { SkipLink } from "./SkipLink.tsx"
import { agentsView, emptyView, modelsView, type RoomName } from "../view/View.ts"

interface PageHeaderProps {
  /** the rooms that the key opens, and the one that is open */
  readonly doors: ReadonlyArray<RoomName>
  readonly open: RoomName
  /** how the rooms are, in a word */
  readonly rooms: ComponentChildren
  onForget(): void
}

const views = { sites: emptyView, models: modelsView, agents: agentsView } as const
const names = { sites: "Sites", models: "Models", agents: "Agents" } as const

export const PageHeader = ({ doors, onForget, open, rooms }: PageHeaderProps) => (
  <>
    <SkipLink />
    <header class="page-header">
      <ViewLink to={emptyView} class="wordmark">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="4" />
          <path d="M4 12V8M8 12V4M12 12V6.500" />
        </svg>
        Signalbox
      </ViewLink>
      <nav aria-label="Console">
        {rooms}
        {doors.map((name) => (
          <ViewLink key={name} to={views[name]} isCurrent={name === open}>
            {names[name]}
          </ViewLink>
        ))}
        <a href="/docs">API</a>
        {doors.length > 0 && (
          <button type="button" class="plain" onClick={onForget}>
            <span class="long">Forget key</span>
            <span class="short" aria-hidden="true">
              Forget
            </span>
          </button>
        )}
      </nav>
    </header>
  </>
)
