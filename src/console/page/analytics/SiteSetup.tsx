import type { Site } from "#schemas/analytics/Site.ts"
import { useState } from "preact/hooks"
import { Code } from "../parts/Code.tsx"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"
import { formatView } from "../view/View.ts"
import { Keeping } from "./Keeping.tsx"
import { siteView } from "./SiteParams.ts"

interface SiteSetupProps {
  readonly site: Site
  readonly secret: string | undefined
}

/** Instructions for sending events, from pages and from servers, and the choice of who may see the figures. */
export const SiteSetup = ({ secret: shownSecret, site }: SiteSetupProps) => {
  const [secret, setSecret] = useState(shownSecret)
  const change = useChange()
  const replaceSecret = (): void =>
    void change.run(async (ask) => {
      const path = `/api/v1/sites/${site.id}/secret`
      setSecret((await ask<{ readonly secret: string }>(path, { method: "POST" })).secret)
    })

  return (
    <div class="site-setup">
      <section>
        <h2>In the pages</h2>
        <p>Put this into the head of every page. It sets no cookie and stores nothing.</p>
        <Code
          of="snippet"
          text={`<script defer data-site="${site.id}" src="${location.origin}/a.js"></script>`}
        />
        <p class="hint">
          Goals, from your own script:{" "}
          <code>
            beacon("Signup", {"{"} props: {"{"} plan: "pro" {"}"} {"}"})
          </code>
        </p>
      </section>
      <section>
        <h2>From a server</h2>
        <Code of="command" text={collectCommand(secret)} />
        {secret === undefined ? (
          <p class="hint">
            The site’s secret goes in the place of <code>SITE_SECRET</code>. It was shown when the site was
            made.{" "}
            <button type="button" class="plain" onClick={replaceSecret} disabled={change.isBusy}>
              Make a new one
            </button>{" "}
            (the old one stops working).
          </p>
        ) : (
          <p class="secret" role="status">
            <strong>The site’s secret is in the command above, and is shown only now.</strong> Keep it: it
            writes events for this site and reads nothing.
          </p>
        )}
        <p class="hint">
          Clients that batch and retry: <a href="/scripts/beacon.mjs">JavaScript</a>,{" "}
          <a href="/scripts/beacon.py">Python</a>, <a href="/scripts/beacon.php">PHP</a>.
        </p>
      </section>
      <Sharing site={site} />
      <Keeping site={site} />
      <Toast>{change.problem}</Toast>
    </div>
  )
}

/** A path is enough for `url`: the site's domain is assumed. `visitor` stands for address and User-Agent. */
const collectCommand = (secret = "SITE_SECRET"): string =>
  [
    `curl ${location.origin}/api/v1/collect`,
    `  -H 'Authorization: Bearer ${secret}'`,
    `  -H 'Content-Type: application/json'`,
    `  -d '{"url":"/","visitor":"me"}'`
  ].join(" \\\n")

const Sharing = ({ site }: { readonly site: Site }) => {
  const [isPublic, setPublic] = useState(site.public)
  const { isBusy, problem, run } = useChange()
  const change = async (wanted: boolean): Promise<void> => {
    // The wish is shown at once, and taken back if the server refuses.
    setPublic(wanted)
    const json = { public: wanted }
    const isDone = await run(async (ask) => {
      await ask(`/api/v1/sites/${site.id}`, { method: "PATCH", json })
    })
    if (!isDone) setPublic(!wanted)
  }
  return (
    <section>
      <h2>Who may see the figures</h2>
      <label class="check">
        <input
          type="checkbox"
          checked={isPublic}
          disabled={isBusy}
          onChange={(event) => void change(event.currentTarget.checked)}
        />
        Everybody who has the link
      </label>
      {isPublic && !isBusy && <Code of="link" text={`${location.origin}${formatView(siteView(site.id))}`} />}
      <Toast>{problem}</Toast>
    </section>
  )
}
