import type { Ask } from "../../api/Ask.ts"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"

/** The outcome of an action. */
export interface Noticed {
  readonly text: string
  readonly isProblem?: boolean
  /** takes it back */
  undo?(ask: Ask): Promise<unknown>
}

interface NoticeProps {
  readonly noticed: Noticed | undefined
  onUndone(): void
}

/** Says what came of an action, and offers to take it back. */
export const Notice = ({ noticed, onUndone }: NoticeProps) => {
  const change = useChange()
  const undo = noticed?.undo
  const run = async (): Promise<void> => {
    if (undo !== undefined && (await change.run(undo))) onUndone()
  }
  return (
    <div class={noticed === undefined ? undefined : "notice"}>
      <Toast isGood={noticed?.isProblem !== true}>{noticed?.text}</Toast>
      {undo !== undefined && (
        <button type="button" class="plain" disabled={change.isBusy} onClick={() => void run()}>
          Undo
        </button>
      )}
      <Toast>{change.problem}</Toast>
    </div>
  )
}
