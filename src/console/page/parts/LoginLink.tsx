import { useRef, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import { type OpenSession, signInByLink } from "../api/SignIn.ts"
import { Heading } from "./Heading.tsx"
import { Toast } from "./Toast.tsx"
import { useChange } from "./UseChange.ts"

interface LoginLinkProps {
  readonly ticket: string
  enter(session: OpenSession): Promise<void>
  /** to the page without it */
  onLeave(): void
}

/** Signs in by a login link, on a press alone: a program that loads the page of a link does not use it up. */
export const LoginLink = ({ enter, onLeave, ticket }: LoginLinkProps) => {
  const change = useChange()
  // The ticket is used up once it has begun a session, also where the page could not go on with it at once.
  const session = useRef<OpenSession>(undefined)
  const [isUsedUp, setUsedUp] = useState(false)
  const signIn = (): void =>
    void change.run(async (): Promise<void> => {
      try {
        session.current ??= await signInByLink(ticket)
      } catch (error) {
        if (error instanceof Refused && error.retryMillis === undefined) return setUsedUp(true)
        throw error
      }
      await enter(session.current)
      onLeave()
    })
  return (
    <section class="narrow" aria-busy={change.isBusy}>
      <Heading>Sign in</Heading>
      {isUsedUp ? (
        <p role="alert">
          This login link was used already, or has expired. Ask an administrator for another one.
        </p>
      ) : (
        <p>This login link signs you in on this browser. It works once.</p>
      )}
      <Toast>{change.problem}</Toast>
      <p class="buttons">
        {!isUsedUp && (
          <button type="button" class="primary" disabled={change.isBusy} onClick={signIn}>
            Sign in
          </button>
        )}
        <button type="button" onClick={onLeave}>
          Go on without it
        </button>
      </p>
    </section>
  )
}
