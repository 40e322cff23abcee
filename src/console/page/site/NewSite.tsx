import type { ComponentChildren } from "preact"
import { useId, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import type { CreatedSite } from "../api/Contract.ts"
import { useSession } from "../api/Session.ts"

interface NewSiteProps {
  onMade(created: CreatedSite): void
  readonly isFirst?: boolean
}

const ownTimeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Makes a site: the domain is enough. */
export const NewSite = ({ isFirst = false, onMade }: NewSiteProps) => {
  const { isBusy, make, problem } = useMaking(onMade)
  const [fields, setFields] = useState({ name: "", domain: "", timezone: ownTimeZone })
  const zones = useId()
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    void make(fields)
  }
  const text = (name: keyof typeof fields) => ({
    type: "text" as const,
    value: fields[name],
    onInput: (event: { readonly currentTarget: HTMLInputElement }): void =>
      setFields({ ...fields, [name]: event.currentTarget.value })
  })
  return (
    <form class="site-form" aria-busy={isBusy} onSubmit={onSubmit}>
      {isFirst && <Introduction />}
      <Field label="Domain" hint="Its sub-domains count too">
        {(id) => (
          <input
            id={id}
            required
            maxLength={253}
            placeholder="example.com"
            autocapitalize="off"
            {...text("domain")}
          />
        )}
      </Field>
      <Field label="Name" hint="Optional">
        {(id) => <input id={id} maxLength={100} {...text("name")} />}
      </Field>
      <Field label="Time zone" hint="Days begin at its midnight">
        {(id) => <input id={id} required maxLength={64} list={zones} {...text("timezone")} />}
      </Field>
      <datalist id={zones}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <p class="problem" role="alert">
        {problem}
      </p>
      <button type="submit" class="primary" disabled={isBusy}>
        Make the site
      </button>
    </form>
  )
}

const Introduction = () => (
  <>
    <h1>Count the first site</h1>
    <p>
      Name the domain, put one line into its pages, and visits show here as they happen. No cookies, nothing
      stored in the visitor’s browser.
    </p>
  </>
)

interface SiteFields {
  readonly name: string
  readonly domain: string
  readonly timezone: string
}

const useMaking = (onMade: NewSiteProps["onMade"]) => {
  const { ask, onUnknownKey } = useSession()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const make = async (fields: SiteFields): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      const name = fields.name.trim() === "" ? fields.domain : fields.name
      onMade(await ask<CreatedSite>("/api/v1/sites", { method: "POST", json: { ...fields, name } }))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.status === 401) return onUnknownKey()
      setProblem(error.message)
      setBusy(false)
    }
  }
  return { isBusy, make, problem }
}

interface FieldProps {
  readonly label: string
  readonly hint: string
  children(id: string): ComponentChildren
}

const Field = ({ children, hint, label }: FieldProps) => {
  const id = useId()
  return (
    <p class="field">
      <label for={id}>
        {label} <span class="hint">{hint}</span>
      </label>
      {children(id)}
    </p>
  )
}
