import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Ask } from "../../api/Ask.ts"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"

/** The outcome of an action. */
export interface Noticed {
  readonly text: string
  readonly isProblem?: boolean
  /** takes it back */
  undo?(ask: Ask): Promise<unknown>
  /** the directory on whose page it is said; absent: the one that is open */
  readonly at?: string
  /** said once it is taken back */
  readonly undone?: string
}

interface NoticeProps {
  readonly noticed: Noticed | undefined
  onUndone(): void
}

/** Says what came of an action, and offers to take it back. */
export const Notice = ({ noticed, onUndone }: NoticeProps) => {
  const change = useChange()
  const [undone, setUndone] = useState<Noticed>()
  const place = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const isUndone = noticed !== undefined && undone === noticed
  // The row that had the focus goes away.
  useLayoutEffect(() => button.current?.focus(), [noticed])
  const undo = noticed?.undo
  const run = async (): Promise<void> => {
    if (undo === undefined || !(await change.run(undo))) return
    place.current?.focus()
    setUndone(noticed)
    onUndone()
  }
  return (
    <div ref={place} tabIndex={-1} class={noticed === undefined ? undefined : "notice"}>
      <Toast isGood={noticed?.isProblem !== true}>{isUndone ? noticed.undone : noticed?.text}</Toast>
      {undo !== undefined && !isUndone && (
        <button ref={button} type="button" class="plain" disabled={change.isBusy} onClick={() => void run()}>
          Undo
        </button>
      )}
      <Toast>{change.problem}</Toast>
    </div>
  )
}
