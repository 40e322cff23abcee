import type { ComponentChildren } from "preact"
import { ViewLink } from "../view/Navigation.tsx"
import { emptyView } from "../view/View.ts"

interface PageHeaderProps {
  readonly hasKey: boolean
  /** how the rooms are, in a word */
  readonly rooms: ComponentChildren
  onForget(): void
}

export const PageHeader = ({ hasKey, onForget, rooms }: PageHeaderProps) => (
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
      {hasKey && <ViewLink to={emptyView}>Sites</ViewLink>}
      <a href="/docs">API</a>
      {hasKey && (
        <button type="button" class="plain" onClick={onForget}>
          Forget key
        </button>
      )}
    </nav>
  </header>
)
