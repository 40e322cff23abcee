import { type Definitions, type FieldRow, type Node, rowsOfNode } from "#src/docs/page/FieldRows.ts"
import { formatJson } from "#src/docs/page/FormatJson.ts"
import { html, type Html } from "#src/http/Html.ts"
import { contents, example, fieldTable, tableOfFields } from "#src/docs/page/Parts.ts"
import type { ReferencePage } from "#src/docs/page/ReferencePage.ts"
import { examplePath, otherBodies, requestExamples, requiredQueries } from "./RequestExamples.ts"
import { type Document, type Group, groupsOf, type Operation, type Parameter } from "./Operations.ts"
import { sampleOf } from "./Samples.ts"

/** The text of descriptions in the document: paragraphs, indented code, and `code` among words. */
const prose = (text: string): Html =>
  html`${text
    .split(/\n{2,}/)
    .filter((part) => part.trim() !== "")
    .map((part) =>
      part.startsWith("    ")
        ? html`<pre
            tabindex="0"
            role="group"
            aria-label="Code"
          ><code>${part.replaceAll(/^ {4}/gm, "")}</code></pre>`
        : html`<p>${words(part)}</p>`
    )}`

/** `code` among words, and addresses of this server as links. */
const words = (text: string): Html =>
  html`${text.split(/(`[^`]+`|\/docs\/agent\b)/).map((part) => {
    if (part === "/docs/agent") return html`<a href="/docs/agent">/docs/agent</a>`
    return part.startsWith("`") && part.length > 1 ? html`<code>${part.slice(1, -1)}</code>` : html`${part}`
  })}`

const anchorOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-")

/** For places where there is nothing but text. */
const titleOf = ({ operationId, summary = operationId }: Operation): string => summary.replaceAll("`", "")

/** By scheme: the credential in words, and its variable in commands. */
const credentials = {
  apiKey: { words: "a key", variable: "KEY" },
  siteSecret: { words: "a site’s secret", variable: "SITE_SECRET" },
  subscriberToken: { words: "a subscriber’s token", variable: "SUBSCRIBER_TOKEN" }
} as const

const isScheme = (scheme: string): scheme is keyof typeof credentials => scheme in credentials

const credentialOf = ({ security = [] }: Operation) => {
  const [scheme = ""] = Object.keys(security[0] ?? {})
  return isScheme(scheme) ? credentials[scheme] : undefined
}

/** A body that is worth sending, else one that fits its schema. */
const exampleOf = ({ operationId, requestBody }: Operation, schemas: Definitions): unknown =>
  requestExamples[operationId] ??
  sampleOf(requestBody?.content["application/json"]?.schema ?? {}, schemas, "")

/** The request as a command: `$URL` is this server's address, `$KEY` a key. */
const commandOf = (operation: Operation, schemas: Definitions): string => {
  const { method, operationId, path } = operation
  const credential = credentialOf(operation)
  const query = requiredQueries[operationId]
  const parts = [
    `curl${method === "GET" ? "" : ` -X ${method}`} "$URL${examplePath(path)}${query === undefined ? "" : `?${query}`}"`
  ]
  if (credential !== undefined) parts.push(`-H "Authorization: Bearer $${credential.variable}"`)
  if (otherBodies[operationId] !== undefined) parts.push(otherBodies[operationId])
  else if (operation.requestBody !== undefined) {
    parts.push("-H 'Content-Type: application/json'")
    // As a shell takes it: a quote within quotes ends them, is one of its own, and begins them again.
    parts.push(`-d '${formatJson(exampleOf(operation, schemas)).replaceAll("'", String.raw`'\''`)}'`)
  }
  return parts.join(" \\\n  ")
}

const command = (operation: Operation, schemas: Definitions): Html =>
  html`<pre
    tabindex="0"
    role="group"
    aria-label="Request: ${titleOf(operation)}"
  ><code>${commandOf(operation, schemas)}</code></pre>`

const rowOf = ({ name, required = false, schema }: Parameter, schemas: Definitions): FieldRow => {
  const [row] = rowsOfNode({ properties: { [name]: schema } }, schemas)
  const otherwise = schema.default === undefined ? "" : `default ${String(schema.default)}`
  return {
    path: name,
    type: row?.type ?? "string",
    limits: [row?.limits ?? "", otherwise].filter((part) => part !== "").join(", "),
    description: row?.description ?? "",
    isRequired: required
  }
}

const places = [
  { place: "path", title: "In the path" },
  { place: "query", title: "In the query" },
  { place: "header", title: "Headers" }
] as const

const parameterTables = (
  { parameters = [], summary = "" }: Operation,
  schemas: Definitions
): ReadonlyArray<Html> =>
  places.flatMap(({ place, title }) => {
    const rows = parameters
      .filter((parameter) => parameter.in === place)
      .map((parameter) => rowOf(parameter, schemas))
    return rows.length === 0 ? [] : [html`<h4>${title}</h4>`, tableOfFields(`${title}: ${summary}`, rows)]
  })

/** One row a field: of a field that is one thing or another, both. */
const merged = (rows: ReadonlyArray<FieldRow>): ReadonlyArray<FieldRow> => {
  const byPath = new Map<string, FieldRow>()
  for (const row of rows) {
    const before = byPath.get(row.path)
    const types = new Set([before?.type, row.type].filter((type) => type !== undefined))
    byPath.set(row.path, { ...(before ?? row), type: [...types].join(" | ") })
  }
  return [...byPath.values()]
}

const bodyOf = ({ requestBody, summary = "" }: Operation, schemas: Definitions): ReadonlyArray<Html> =>
  Object.entries(requestBody?.content ?? {}).flatMap(([contentType, { schema = {} }]) => {
    const rows = merged(rowsOfNode(schema, schemas))
    return [
      html`<h4>Body <span class="hint">${contentType}</span></h4>`,
      ...(rows.length === 0 ? [] : [fieldTable(`the body: ${summary}`, rows)])
    ]
  })

/** The successful answer: an example, and every field behind it. */
const successOf = (operation: Operation, schemas: Definitions): ReadonlyArray<Html> => {
  const [status = "200", answer] =
    Object.entries(operation.responses).find(([code]) => code.startsWith("2")) ?? []
  const types = Object.entries(answer?.content ?? {})
  const schema: Node | undefined = answer?.content?.["application/json"]?.schema
  const title = titleOf(operation)
  return [
    html`<h4>${status} <span class="hint">${types.map(([type]) => type).join(", ") || "no body"}</span></h4>`,
    ...(schema === undefined
      ? []
      : [
          example(`Answer: ${title}`, sampleOf(schema, schemas, "")),
          html`<details>
            <summary>Fields of the answer</summary>
            ${fieldTable(`the answer: ${title}`, merged(rowsOfNode(schema, schemas)))}
          </details>`
        ])
  ]
}

const errorsOf = ({ responses }: Operation): Html => {
  const errors = Object.entries(responses).filter(([status]) => !status.startsWith("2"))
  return errors.length === 0
    ? html``
    : html`<details>
        <summary>Errors: ${errors.map(([status]) => status).join(", ")}</summary>
        <dl class="errors">
          ${errors.map(
            ([status, { description }]) =>
              html`<div>
                <dt><code>${status}</code></dt>
                <dd>${words(description)}</dd>
              </div>`
          )}
        </dl>
      </details>`
}

const operationOf = (operation: Operation, schemas: Definitions): Html => {
  const { description = "", method, operationId, path, summary = operationId } = operation
  const credential = credentialOf(operation)
  const anchor = anchorOf(operationId)
  return html`<section id="${anchor}">
    <h3><a href="#${anchor}">${words(summary)}</a></h3>
    <p class="endpoint">
      <code><strong>${method}</strong> ${path}</code>
      <span class="hint">${credential === undefined ? "open to everybody" : `with ${credential.words}`}</span>
    </p>
    ${prose(description)} ${command(operation, schemas)} ${parameterTables(operation, schemas)}
    ${bodyOf(operation, schemas)} ${successOf(operation, schemas)} ${errorsOf(operation)}
  </section>`
}

const groupOf = ({ description, name, operations }: Group, schemas: Definitions): Html =>
  html`<section id="${anchorOf(name)}">
    <h2><a href="#${anchorOf(name)}">${name}</a></h2>
    ${prose(description)} ${operations.map((operation) => operationOf(operation, schemas))}
  </section>`

const overviewOf = (groups: ReadonlyArray<Group>): Html =>
  html`<nav class="contents" aria-label="Contents">
    <ul>
      ${groups.map(({ name, operations }) =>
        contents(
          name,
          operations.map(({ operationId, summary = operationId }) => ({
            anchor: anchorOf(operationId),
            name: summary.replaceAll("`", "")
          }))
        )
      )}
    </ul>
  </nav>`

const keysOf = ({ components: { securitySchemes } }: Document): Html =>
  html`<section id="keys-and-secrets">
    <h2><a href="#keys-and-secrets">Keys, and the commands below</a></h2>
    <p>
      The commands take <code>$URL</code>, this server’s address without a path, and <code>$KEY</code>, a key;
      the first start printed one.
    </p>
    <pre
      tabindex="0"
      role="group"
      aria-label="Code"
    ><code>export URL=http://127.0.0.1:8080 KEY=sk_…</code></pre>
    ${Object.values(securitySchemes).map(({ description }) => prose(description))}
  </section>`

/** Every endpoint, made from the document that programs read. */
export const apiPage = (document: Document) => {
  const groups = groupsOf(document)
  const { schemas } = document.components
  return {
    path: "/docs",
    title: "API",
    main: html`
      <h1>API</h1>
      <div class="lead">
        ${prose(document.info.description)}
        <p>
          <a href="/openapi.json">The same as OpenAPI 3.1</a>, for programs and for clients of your choice.
        </p>
      </div>
      ${overviewOf(groups)} ${keysOf(document)} ${groups.map((group) => groupOf(group, schemas))}
    `
  } as const satisfies ReferencePage
}
