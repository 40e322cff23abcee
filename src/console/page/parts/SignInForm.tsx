import { useEffect, useId, useRef } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import { type OpenSession, signInByKey } from "../api/SignIn.ts"
import type { PagedRoom } from "../view/Rooms.ts"
import { probed } from "./Access.ts"
import { Form } from "./Form.tsx"
import { Toast } from "./Toast.tsx"
import { useChange } from "./UseChange.ts"

interface SignInFormProps {
  readonly rooms: ReadonlyArray<PagedRoom>
  enter(session: OpenSession): Promise<void>
  enterByKey(key: string): Promise<void>
  /** why it is asked for again */
  readonly notice: string | undefined
  /** of the user whose session has ended */
  readonly email: string | undefined
  /** to where the key was not needed */
  readonly onBack: (() => void) | undefined
}

/**
 * Asks for the key. It is read from its field when it is sent, in the header of a request to this server, and is gone with
 * the field: an account's begins a session. Password managers know the form by its fields, and a sign-in by the form's end.
 */
export const SignInForm = ({ email, enter, enterByKey, notice, onBack, rooms }: SignInFormProps) => {
  const change = useChange((refused) => wordsFor(refused, rooms))
  const { forgetProblem, isBusy, problem } = change
  const id = useId()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus({ preventScroll: true }), [])
  const onSubmit = (): void =>
    void change.run(async () => {
      const key = field.current?.value.trim() ?? ""
      const malformed = problemOf(key)
      if (malformed !== undefined) throw new Refused(malformedStatus, malformed, undefined)
      await (key.startsWith("sk_mr_") ? enterByKey(key) : enter(await signInByKey(key)))
    })
  return (
    <Form class="key-form" change={change} onSubmit={onSubmit}>
      <h1>Sign in</h1>
      {notice !== undefined && problem === undefined && <p role="status">{notice}</p>}
      <input hidden name="username" autocomplete="username" value={email ?? ""} />
      <label for={id}>API key</label>
      <div class="field-row">
        <input
          ref={field}
          id={id}
          type="password"
          name="password"
          onInput={forgetProblem}
          autocomplete="current-password"
          autocapitalize="off"
          spellcheck={false}
          placeholder="sk_…"
          required
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-problem ${id}-hint`}
        />
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
      </div>
      <Toast id={`${id}-problem`}>{problem}</Toast>
      {onBack !== undefined && (
        <p>
          <button type="button" class="plain" onClick={onBack}>
            Back to the shared view
          </button>
        </p>
      )}
      <p id={`${id}-hint`} class="hint">
        The first start printed it, and wrote it to <code>admin.json</code> in the data directory. This
        browser stays signed in without it. A router’s key (<code>sk_mr_…</code>) stays in this tab’s memory
        instead: a reload asks for it again.
      </p>
    </Form>
  )
}

/** Of a key that is refused before any room is asked. */
const malformedStatus = 400

/** Problems of a key that need no request. */
const problemOf = (key: string): string | undefined => {
  if (key.startsWith("ssk_"))
    return "That is a site’s secret: it writes events and reads nothing. Enter a key (sk_…)."
  return /^[\x21-\x7e]+$/.test(key) ? undefined : "A key has letters, digits and _ only."
}

const wordsFor = ({ message, retryMillis, status }: Refused, rooms: ReadonlyArray<PagedRoom>): string => {
  if (status === malformedStatus) return message
  if (status === 401) return "The server does not know this key. Check that all of it was pasted."
  if (status === 404) {
    const names = probed(rooms).map(({ room }) => room.tile.title.toLowerCase())
    return `Nothing is served here that this page shows: neither ${names.join(" nor ")} are among this server’s ROOMS.`
  }
  if (status === 429) return "Too many attempts. Wait a moment, then try again."
  return retryMillis === undefined ? `${message}.` : `${message}. Try again in a moment.`
}
