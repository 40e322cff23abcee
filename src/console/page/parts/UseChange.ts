import { useState } from "preact/hooks"
import type { Ask } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import { useSession } from "../api/Session.ts"

/** A change that the server is asked for, and its objection. */
export interface Change {
  readonly isBusy: boolean
  readonly problem: string | undefined
  /** the field that the problem is with, where the server names one */
  readonly field: string | undefined
  /** false: it was refused */
  run(body: (ask: Ask) => Promise<unknown>): Promise<boolean>
  forgetProblem(): void
}

const plainWords = ({ message }: Refused): string => message

/** One change at a time. If the session has ended, the page asks to sign in. */
export const useChange = (wordsFor: (refused: Refused) => string = plainWords): Change => {
  const { ask, isSignedIn, onSignedOut } = useSession()
  const [isBusy, setBusy] = useState(false)
  const [refused, setRefused] = useState<Refused>()
  const run: Change["run"] = async (body) => {
    setBusy(true)
    setRefused(undefined)
    try {
      await body(ask)
      return true
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.status === 401 && isSignedIn) onSignedOut()
      else setRefused(error)
      return false
    } finally {
      setBusy(false)
    }
  }
  return {
    isBusy,
    problem: refused && wordsFor(refused),
    field: refused?.field,
    run,
    forgetProblem: () => setRefused(undefined)
  }
}
