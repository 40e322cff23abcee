import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"
import { type Ask, keyBearer, makeAsk } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import { askOf, type OpenSession, presentSession, signOut, type User } from "../api/SignIn.ts"
import { onTold, tellTabs } from "../api/Tabs.ts"
import { whenVisible } from "../api/WhenVisible.ts"
import type { PagedRoom } from "../view/Rooms.ts"
import { type Access, accessOf } from "./Access.ts"

/** The page's user. */
interface Opened {
  readonly ask: Ask
  readonly access: Access
  /** undefined: it was opened with a router's key */
  readonly user: User | undefined
}

/** `ended`: by itself or from elsewhere. The page behind the form is kept for its user, who may have typed something. */
type SignInState = { readonly notice?: string | undefined } & (
  | { readonly phase: "starting" | "out"; readonly opened?: undefined }
  | { readonly phase: "in" | "ended"; readonly opened: Opened }
)

export interface SignIn {
  readonly state: SignInState
  /** with a session that has just begun */
  enter(session: OpenSession): Promise<void>
  /** with a router's key, which stays in the memory of this tab */
  enterByKey(key: string): Promise<void>
  /** the server takes the session, or the router's key, no more */
  onSignedOut(): void
  /** drops everything that was read */
  leave(notice: string): void
}

interface SignInOptions {
  readonly rooms: ReadonlyArray<PagedRoom>
  /** the page is opened to a user, and not opened again */
  onOpened(access: Access): void
  /** the trouble that the start waits for */
  onTrouble(part: string, trouble: Refused | undefined): void
}

const ended =
  "Your session has ended: it expired, was ended elsewhere, or its key was revoked. Sign in again to go on where you were."
const revoked = "The server does not take that key any more. It was revoked, or has expired."

const noCookie =
  "The browser did not keep the session: it blocks cookies here, or the server’s BASE_URL is https and this address is not"

/** The page behind the form asks for nothing. */
const askNothing = makeAsk(() => Promise.reject(new Refused(401, "Signed out", undefined)))

/** The state once the server takes the session, or the router's key, no more. */
const afterEnd = (before: SignInState): SignInState => {
  if (before.phase !== "in") return before
  const { opened } = before
  if (opened.user === undefined) return { phase: "out", notice: revoked }
  return { phase: "ended", opened: { ...opened, ask: askNothing }, notice: ended }
}

/** Signs in by the session of this browser, at the start and when another tab does; by a form otherwise. */
export const useSignIn = ({ onOpened, onTrouble, rooms }: SignInOptions): SignIn => {
  const [state, setState] = useState<SignInState>({ phase: "starting" })
  const latest = useRef({ state, onOpened })
  latest.current = { state, onOpened }

  const actions = useMemo(() => {
    const open = async (ask: Ask, user?: User): Promise<void> => {
      const { state: before } = latest.current
      if (before.phase === "ended" && user !== undefined && before.opened.user?.id === user.id)
        return setState({ phase: "in", opened: { ...before.opened, ask } })
      const access = await accessOf(ask, rooms)
      setState({ phase: "in", opened: { access, ask, user } })
      latest.current.onOpened(access)
    }
    const resume = async ({ user }: OpenSession): Promise<void> => {
      const { opened, phase } = latest.current.state
      if (phase === "in" && opened.user?.id === user.id) return
      try {
        await open(askOf(user), user)
      } catch (error) {
        // A session that opens nothing here would be in the way of the form.
        if (error instanceof Refused && (error.status === 403 || error.status === 404)) await signOut()
        throw error
      }
    }
    return {
      resume,
      enter: async (session: OpenSession): Promise<void> => {
        await resume(session).catch((error: unknown) => {
          if (error instanceof Refused && error.status === 401) throw new Refused(403, noCookie, undefined)
          throw error
        })
        tellTabs("signed in")
      },
      enterByKey: (key: string) => open(makeAsk(keyBearer(key))),
      onSignedOut: () => setState(afterEnd),
      leave: (notice: string): void => {
        if (latest.current.state.opened?.user !== undefined) tellTabs("signed out")
        setState({ phase: "out", notice })
      }
    }
  }, [rooms])

  const present = useCallback(() => latest.current.state, [])
  usePresentSession(present, setState, actions.resume, onTrouble)
  return { state, ...actions }
}

/** Goes on with the session of this browser, and follows what other tabs do with it. */
const usePresentSession = (
  present: () => SignInState,
  set: (state: SignInState) => void,
  resume: (session: OpenSession) => Promise<void>,
  onTrouble: SignInOptions["onTrouble"]
): void =>
  useEffect(() => {
    const page = new AbortController()
    const load = async (): Promise<void> => {
      try {
        await resume(await presentSession())
        onTrouble("session", undefined)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        if (error.retryMillis === undefined) {
          if (present().phase === "starting") set({ phase: "out" })
          return
        }
        onTrouble("session", error)
        whenVisible(error.retryMillis, load, page.signal)
      }
    }
    onTold((change) => {
      const { opened, phase } = present()
      // A router's key is this tab's alone.
      if (opened !== undefined && opened.user === undefined) return
      if (change === "signed in") void load()
      else if (phase !== "out") set({ phase: "out", notice: "You signed out in another tab." })
    }, page.signal)
    void load()
    return () => page.abort()
  }, [present, set, resume, onTrouble])
