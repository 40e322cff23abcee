import type { CreatedSite, Site } from "#schemas/analytics/Site.ts"
import { useId, useState } from "preact/hooks"
import { Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"
import { ViewLink } from "../view/Navigation.tsx"
import { siteView } from "./SiteParams.ts"

interface NewSiteProps {
  /** the present sites */
  readonly sites: ReadonlyArray<Site>
  onMade(created: CreatedSite): void
  readonly isFirst?: boolean
}

const ownTimeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** Makes a site: the domain is enough. */
export const NewSite = ({ isFirst = false, onMade, sites }: NewSiteProps) => {
  const change = useChange()
  const [fields, setFields] = useState({ name: "", domain: "", timezone: ownTimeZone })
  const zones = useId()
  const [confirmed, setConfirmed] = useState<string>()
  const domain = domainOf(fields.domain)
  const twin = confirmed === domain ? sites.find((site) => site.domain === domain) : undefined
  const onSubmit = (): void => {
    const isKnown = sites.some((site) => site.domain === domain)
    // The first submit warns that there is one; the second confirms.
    if (isKnown && confirmed !== domain) return setConfirmed(domain)
    const name = fields.name.trim() === "" ? fields.domain : fields.name
    const json = { ...fields, name }
    void change.run(async (ask) => onMade(await ask("/api/v1/sites", { method: "POST", json })))
  }
  const text = (name: keyof typeof fields) => ({
    name,
    value: fields[name],
    onInput: (typed: string): void => setFields({ ...fields, [name]: typed })
  })
  return (
    <Form
      class="site-form"
      change={change}
      submit={twin === undefined ? "Make the site" : "Make a second site"}
      onSubmit={onSubmit}
    >
      {isFirst && <Introduction />}
      <TextField
        label="Domain"
        hint="Its sub-domains count too"
        required
        maxLength={253}
        placeholder="example.com"
        autocapitalize="off"
        {...text("domain")}
      />
      <TextField label="Name" hint="Optional" maxLength={100} {...text("name")} />
      <TextField
        label="Time zone"
        hint="Days begin at its midnight"
        required
        maxLength={64}
        list={zones}
        {...text("timezone")}
      />
      <datalist id={zones}>
        {Intl.supportedValuesOf("timeZone").map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {twin !== undefined && <Twin site={twin} />}
    </Form>
  )
}

const Twin = ({ site }: { readonly site: Site }) => (
  <p role="alert" class="trouble">
    <ViewLink to={siteView(site.id)}>{site.name}</ViewLink> counts {site.domain} already. A second site has an
    id and a snippet of its own, and figures apart from the first one’s.
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
