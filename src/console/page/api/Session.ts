import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { type Ask, makeAsk } from "./Ask.ts"
import type { Refused } from "./Refused.ts"

/** Who is at the page: asks with their key, which lives in this object as long as the tab does, and nowhere else. */
export interface Session {
  readonly ask: Ask
  readonly hasKey: boolean
  /** the server does not know the key any more */
  onUnknownKey(): void
  /** tells the page what a part of it is waiting for; undefined once it has its answer */
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
