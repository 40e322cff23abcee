import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { type Ask, makeAsk } from "./Ask.ts"
import type { Refused } from "./Refused.ts"

/** The page's user, and how to ask in their name. */
export interface Session {
  readonly ask: Ask
  readonly isSignedIn: boolean
  /** undefined: a router's key, or nobody */
  readonly userId: string | undefined
  /** the server takes neither the session nor the key any more */
  onSignedOut(): void
  /** shows the trouble that a part of the page waits for; undefined once the part has its answer */
  onTrouble(part: string, trouble: Refused | undefined): void
}

/** A reader who is not signed in. */
export const outsider: Session = {
  ask: makeAsk(),
  isSignedIn: false,
  userId: undefined,
  onSignedOut: () => undefined,
  onTrouble: () => undefined
}

const SessionContext = createContext<Session>(outsider)

export const SessionProvider = SessionContext.Provider

export const useSession = (): Session => useContext(SessionContext)
