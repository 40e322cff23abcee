import { useEffect, useId, useRef, useState } from "preact/hooks"
import { makeAsk } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import type { ModelList, SiteList } from "../api/Contract.ts"

interface KeyFormProps {
  /** the server took the key; its sites are at hand, unless it may not read any */
  onKey(key: string, sites: SiteList | undefined): void
  /** why it is asked for again */
  readonly notice: string | undefined
  /** to where the key was not needed */
  readonly onBack: (() => void) | undefined
}

/** Asks for the key, an account's or a router's. It goes nowhere but into the header of requests to this server. */
export const KeyForm = ({ notice, onBack, onKey }: KeyFormProps) => {
  const [typed, setTyped] = useState("")
  const { check, forgetProblem, isBusy, problem } = useKeyCheck(onKey)
  const id = useId()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus({ preventScroll: true }), [])
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    void check(typed.trim())
  }
  return (
    <form class="key-form" onSubmit={onSubmit} aria-busy={isBusy}>
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
      <p id={`${id}-problem`} class="problem" role="alert">
        {problem}
      </p>
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
    </form>
  )
}

/** Whether the server takes a key, in words where it does not. */
const useKeyCheck = (onKey: KeyFormProps["onKey"]) => {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const check = async (key: string): Promise<void> => {
    const malformed = problemOf(key)
    if (malformed !== undefined) return setProblem(malformed)
    setBusy(true)
    try {
      onKey(key, await sitesOf(key))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      setProblem(wordsFor(error))
      setBusy(false)
    }
  }
  return { check, forgetProblem: () => setProblem(undefined), isBusy, problem }
}

/** The sites that the key may read; undefined where it opens models alone. */
const sitesOf = async (key: string): Promise<SiteList | undefined> => {
  const ask = makeAsk(key)
  try {
    return await ask<SiteList>("/api/v1/sites")
  } catch (error) {
    // A router's key, or a server without analytics.
    if (!(error instanceof Refused) || (error.status !== 403 && error.status !== 404)) throw error
    await ask<ModelList>("/api/v1/models?limit=1&include_collections=false")
    return undefined
  }
}

/** Problems of a key that need no request. */
const problemOf = (key: string): string | undefined => {
  if (key.startsWith("ssk_"))
    return "That is a site’s secret: it writes events and reads nothing. Enter a key (sk_…)."
  return /^[\x21-\x7e]+$/.test(key) ? undefined : "A key has letters, digits and _ only."
}

const wordsFor = ({ message, status }: Refused): string => {
  if (status === 401) return "The server does not know this key. Check that all of it was pasted."
  if (status === 404)
    return "Nothing is served here that this page shows: neither analytics nor models are among this server’s ROOMS."
  if (status === 429) return "Too many requests with this key. Wait a moment, then try again."
  return `${message}. Try again in a moment.`
}
