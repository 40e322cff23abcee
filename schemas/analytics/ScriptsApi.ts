import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

const script = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/javascript; charset=utf-8" }))
const plain = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; charset=utf-8" }))

const pageScript = `The snippet, with the public id of the site:

    <script defer data-site="st_…" src="{base_url}/a.js"></script>

It counts page views (navigation by the History API and returns from the back/forward cache included), measures how
long a page was visible, and offers \`beacon(name, { props })\` for custom events. To call that before the script has
loaded, put this before it: \`<script>window.beacon=window.beacon||function(){(beacon.q=beacon.q||[]).push(arguments)}</script>\`.
It sets no cookie and stores nothing.

Blocklists that many browsers have forbid events to hosts called \`stats.…\` or \`analytics.…\`: give this server another
name. Where its own name is blocked too, pages send to a path of their own site, \`data-api="/hello"\`, which the site's
proxy passes on to \`/api/event\` with \`X-Forwarded-For\` (and \`TRUST_PROXY\` here, so that visitors are told apart);
the script can be served from there in the same way.

A site with a content security policy adds \`script-src {base_url}; connect-src {base_url}\`; the line for early calls is an
inline script, which it allows by its hash or has in a file of its own.

The script is cached for an hour, and for a week more while it is asked for again in the background. Its \`ETag\` is a hash
of its content. Subresource Integrity (\`integrity\`, with \`crossorigin="anonymous"\`) works, and pins one version: after
an update of this server browsers refuse the new one and nothing is counted until the snippet has the new hash, so it is
for those who change both at once.`

const client = (name: string, path: "/scripts/beacon.mjs" | "/scripts/beacon.py" | "/scripts/beacon.php") =>
  HttpApiEndpoint.get(name, path, { success: path.endsWith(".mjs") ? script : plain })

/**
 * Scripts, as the document describes them: one for pages, three for servers. They are served beside the HttpApi, by
 * src/analytics/ingest/ScriptRoutes.ts. Source: contract/analytics#scripts.
 */
export class ScriptsApi extends HttpApiGroup.make("scripts")
  .add(
    HttpApiEndpoint.get("pageScript", "/a.js", { success: script })
      .annotate(OpenApi.Summary, "The script that pages load")
      .annotate(OpenApi.Description, pageScript),
    client("nodeClient", "/scripts/beacon.mjs").annotate(
      OpenApi.Summary,
      "Client of `collect` for Node 18 or later"
    ),
    client("pythonClient", "/scripts/beacon.py").annotate(
      OpenApi.Summary,
      "Client of `collect` for Python 3.8 or later"
    ),
    client("phpClient", "/scripts/beacon.php").annotate(
      OpenApi.Summary,
      "Client of `collect` for PHP 7.4 or later"
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Scripts",
      description:
        "What counts visits elsewhere. The clients for servers are single files without dependencies that know the address " +
        "of this server; how to use one is said at its top. They send in batches, again until the server has every event, " +
        "each with an id so that it counts once, and never throw into the application."
    })
  ) {}
