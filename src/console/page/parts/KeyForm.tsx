import { useEffect, useId, useRef, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import type { PagedRoom } from "../view/Rooms.ts"
import { type Access, accessOf, probed } from "./Access.ts"
import { Form } from "./Form.tsx"
import { Toast } from "./Toast.tsx"
import { useChange } from "./UseChange.ts"

interface KeyFormProps {
  readonly rooms: ReadonlyArray<PagedRoom>
  /** one of the rooms took the key */
  onAccess(access: Access): void
  /** why it is asked for again */
  readonly notice: string | undefined
  /** to where the key was not needed */
  readonly onBack: (() => void) | undefined
}

/** Asks for the key, an account's or a router's. It goes nowhere but into the header of requests to this server. */
export const KeyForm = ({ notice, onAccess, onBack, rooms }: KeyFormProps) => {
  const [typed, setTyped] = useState("")
  const change = useChange((refused) => wordsFor(refused, rooms))
  const { forgetProblem, isBusy, problem } = change
  const id = useId()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus({ preventScroll: true }), [])
  const onSubmit = (): void =>
    void change.run(async () => {
      const key = typed.trim()
      const malformed = problemOf(key)
      if (malformed !== undefined) throw new Refused(malformedStatus, malformed, undefined)
      onAccess(await accessOf(key, rooms))
    })
  return (
    <Form class="key-form" change={change} onSubmit={onSubmit}>
      <h1>Open the console</h1>
      {notice !== undefined && problem === undefined && <p role="status">{notice}</p>}
      <label for={id}>API key</label>
      <div class="field-row">
        <input
          ref={field}
          id={id}
          type="password"
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value)
            forgetProblem()
          }}
          autocomplete="current-password"
          autocapitalize="off"
          spellcheck={false}
          placeholder="sk_…"
          required
          aria-invalid={problem !== undefined}
          aria-describedby={`${id}-problem ${id}-hint`}
        />
        <button type="submit" class="primary" disabled={isBusy}>
          Open
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
        The first start printed it, and wrote it to <code>admin.json</code> in the data directory. It stays in
        this tab’s memory: a reload asks again, and a password manager may answer.
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

const wordsFor = ({ message, status }: Refused, rooms: ReadonlyArray<PagedRoom>): string => {
  if (status === malformedStatus) return message
  if (status === 401) return "The server does not know this key. Check that all of it was pasted."
  if (status === 404) {
    const names = probed(rooms).map(({ room }) => room.tile.title.toLowerCase())
    return `Nothing is served here that this page shows: neither ${names.join(" nor ")} are among this server’s ROOMS.`
  }
  if (status === 429) return "Too many requests with this key. Wait a moment, then try again."
  return `${message}. Try again in a moment.`
}
