import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Ask } from "../api/Ask.ts"
import { Toast } from "./Toast.tsx"
import { useChange } from "./UseChange.ts"
import { useFocusLeft } from "./UseFocusLeft.ts"

interface DialogProps {
  /** on the button that asks the question */
  readonly action: string
  /** says what cannot be undone */
  readonly question: string
  readonly yes: string
  /** the harmless answer */
  readonly no?: string
  run(ask: Ask): Promise<unknown>
}

/** An action that cannot be undone, after a second press. */
export const Dialog = ({ action, no = "Keep it", question, run, yes }: DialogProps) => {
  const change = useChange()
  const [isAsked, setAsked] = useState(false)
  const id = useId()
  const whole = useRef<HTMLDivElement>(null)
  const asking = useRef<HTMLButtonElement>(null)
  const harmless = useRef<HTMLButtonElement>(null)
  const wasAsked = useRef(false)
  useFocusLeft(whole)
  useLayoutEffect(() => {
    // The harmless answer has the focus: pressing Enter twice does nothing.
    if (isAsked) harmless.current?.focus()
    else if (wasAsked.current) asking.current?.focus()
    wasAsked.current = isAsked
  }, [isAsked])

  const confirm = async (): Promise<void> => {
    await change.run(run)
    setAsked(false)
  }
  return (
    <div
      ref={whole}
      class="dialog"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isAsked || change.isBusy) return
        // A dialog around it stays.
        event.preventDefault()
        setAsked(false)
      }}
    >
      {isAsked ? (
        <div role="group" aria-labelledby={id}>
          <p id={id}>{question}</p>
          <button type="button" class="danger" disabled={change.isBusy} onClick={() => void confirm()}>
            {yes}
          </button>{" "}
          <button ref={harmless} type="button" onClick={() => setAsked(false)}>
            {no}
          </button>
        </div>
      ) : (
        <button ref={asking} type="button" onClick={() => setAsked(true)}>
          {action}
        </button>
      )}
      <Toast>{change.problem}</Toast>
    </div>
  )
}
