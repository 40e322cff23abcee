import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { type Ask, makeAsk } from "./Ask.ts"
import type { Refused } from "./Refused.ts"

/** The page's user: asks with their key, which lives in this object as long as the tab does, and nowhere else. */
export interface Session {
  readonly ask: Ask
  readonly hasKey: boolean
  /** the server no longer knows the key */
  onUnknownKey(): void
  /** shows the trouble that a part of the page waits for; undefined once the part has its answer */
  onTrouble(part: string, trouble: Refused | undefined): void
}

const SessionContext = createContext<Session>({
  ask: makeAsk(undefined),
  hasKey: false,
  onUnknownKey: () => undefined,
  onTrouble: () => undefined
})

export const SessionProvider = SessionContext.Provider

export const useSession = (): Session => useContext(SessionContext)
