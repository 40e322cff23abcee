import type { ComponentChildren } from "preact"
import { useId, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import type { CreatedSite, Site } from "../api/Contract.ts"
import { useSession } from "../api/Session.ts"
import { ViewLink } from "../view/Navigation.tsx"
import { emptyView } from "../view/View.ts"

interface NewSiteProps {
  /** the present sites */
  readonly sites: ReadonlyArray<Site>
  onMade(created: CreatedSite): void
  readonly isFirst?: boolean
}

const ownTimeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Makes a site: the domain is enough. */
export const NewSite = ({ isFirst = false, onMade, sites }: NewSiteProps) => {
  const { isBusy, make, problem } = useMaking(onMade)
  const [fields, setFields] = useState({ name: "", domain: "", timezone: ownTimeZone })
  const zones = useId()
  const [confirmed, setConfirmed] = useState<string>()
  const domain = domainOf(fields.domain)
  const twin = confirmed === domain ? sites.find((site) => site.domain === domain) : undefined
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    const isKnown = sites.some((site) => site.domain === domain)
    // The first submit warns that there is one; the second confirms.
    if (isKnown && confirmed !== domain) return setConfirmed(domain)
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
      {twin !== undefined && <Twin site={twin} />}
      <button type="submit" class="primary" disabled={isBusy}>
        {twin === undefined ? "Make the site" : "Make a second site"}
      </button>
    </form>
  )
}

const Twin = ({ site }: { readonly site: Site }) => (
  <p role="alert" class="twin">
    <ViewLink to={{ ...emptyView, site: site.id }}>{site.name}</ViewLink> counts {site.domain} already. A
    second site has an id and a snippet of its own, and figures apart from the first one’s.
  </p>
)

/** The domain as the server will have it: without scheme, `www.`, port and path, in small letters. */
const domainOf = (typed: string): string => {
  try {
    const { hostname } = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(typed) ? typed : `http://${typed.trim()}`)
    return hostname.replace(/^www\./, "")
  } catch {
    // No domain: the server says why not.
    return ""
  }
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
