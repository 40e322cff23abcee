import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"

interface FoldProps {
  readonly class?: string
  readonly summary: ComponentChildren
  readonly children: ComponentChildren
}

/** Content that is rendered on demand: a transcript can hold megabytes of output. */
export const Fold = ({ children, class: name, summary }: FoldProps) => {
  const [wasOpened, setWasOpened] = useState(false)
  return (
    <details class={name === undefined ? "fold" : `fold ${name}`} onToggle={() => setWasOpened(true)}>
      <summary>{summary}</summary>
      {wasOpened && children}
    </details>
  )
}
