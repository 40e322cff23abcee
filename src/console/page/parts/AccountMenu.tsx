import { useId } from "preact/hooks"
import { signOut, signOutEverywhere, type User } from "../api/SignIn.ts"
import { Dialog } from "./Dialog.tsx"
import { Toast } from "./Toast.tsx"
import { useChange } from "./UseChange.ts"

interface AccountMenuProps {
  /** undefined: the page was opened with a router's key */
  readonly user: User | undefined
  onLeave(notice: string): void
}

/** The user's name, and the ways to leave. */
export const AccountMenu = ({ onLeave, user }: AccountMenuProps) => {
  const id = useId()
  return (
    <>
      <button type="button" class="plain account" popoverTarget={id}>
        <span class="unseen">Account: </span>
        <span class="account-name">{user?.email ?? "Router key"}</span>
      </button>
      <div id={id} popover="auto" class="account-menu">
        {user === undefined ? (
          <>
            <p>A router’s key has no session. It is in this tab’s memory: a reload asks for it again.</p>
            <button type="button" onClick={() => onLeave("The key is forgotten.")}>
              Forget key
            </button>
          </>
        ) : (
          <Leaving {...{ onLeave, user }} />
        )}
      </div>
    </>
  )
}

const Leaving = ({ onLeave, user }: { readonly user: User } & Pick<AccountMenuProps, "onLeave">) => {
  const change = useChange()
  const leave = async (end: () => Promise<unknown>, notice: string): Promise<void> => {
    await end()
    onLeave(notice)
  }
  return (
    <>
      <p>
        Signed in as <strong>{user.email}</strong>
      </p>
      <button
        type="button"
        disabled={change.isBusy}
        onClick={() => void change.run(() => leave(signOut, "You are signed out."))}
      >
        Sign out
      </button>
      <Toast>{change.problem}</Toast>
      <Dialog
        action="Sign out everywhere …"
        question="All your browsers will have to sign in again, this one too."
        yes="Sign out everywhere"
        no="Stay signed in"
        run={() => leave(signOutEverywhere, "You are signed out everywhere.")}
      />
    </>
  )
}
