import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import { useSession } from "../api/Session.ts"

interface EndSessionProps {
  readonly id: string
  onEnded(): void
}

type Phase = "at rest" | "asked" | "ending"

/** Ends a session for good, after a second press. */
export const EndSession = ({ id, onEnded }: EndSessionProps) => {
  const { ask } = useSession()
  const [phase, setPhase] = useState<Phase>("at rest")
  const [problem, setProblem] = useState<string>()
  const keep = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    // The harmless answer has the focus: pressing Enter twice ends nothing.
    if (phase === "asked") keep.current?.focus()
  }, [phase])

  const end = async (): Promise<void> => {
    setPhase("ending")
    setProblem(undefined)
    try {
      await ask(`/api/v1/agent/sessions/${encodeURIComponent(id)}`, { method: "DELETE" })
      onEnded()
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      setProblem(`${error.message}.`)
    }
    setPhase("at rest")
  }
  return (
    <div class="end-session">
      {phase === "at rest" ? (
        <button type="button" onClick={() => setPhase("asked")}>
          End session
        </button>
      ) : (
        <div role="group" aria-labelledby="end-question">
          <p id="end-question">What runs is stopped, and it cannot be resumed.</p>
          <button type="button" class="danger" disabled={phase === "ending"} onClick={() => void end()}>
            End it
          </button>{" "}
          <button ref={keep} type="button" onClick={() => setPhase("at rest")}>
            Keep it
          </button>
        </div>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
    </div>
  )
}
