import type { Exchange } from "#schemas/agents/ExampleConversation.ts"
import type { FieldRow } from "./FieldRows.ts"
import { formatJson } from "./FormatJson.ts"
import { html, type Html } from "./Html.ts"
import type { ReferenceEntry, ToolEntry } from "./ProtocolReference.ts"

const descriptionOf = ({ description, limits }: FieldRow): Html =>
  html`${description}${limits === "" ? "" : html`<span class="limits">${limits}</span>`}`

const fieldRow = (row: FieldRow): Html =>
  html`<tr>
    <th scope="row">
      <code>${row.path}</code>${row.isRequired ? "" : html` <span class="hint">optional</span>`}
    </th>
    <td><code>${row.type}</code></td>
    <td>${descriptionOf(row)}</td>
  </tr>`

export const fieldTable = (name: string, rows: ReadonlyArray<FieldRow>): Html =>
  rows.length === 0
    ? html`<p class="hint">No fields of its own.</p>`
    : html`<table class="fields">
        <caption class="unseen">
          Fields of ${name}
        </caption>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Meaning and limits</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(fieldRow)}
        </tbody>
      </table>`

/** Long lines can be scrolled to with the keyboard too. */
export const example = (label: string, value: unknown): Html =>
  html`<pre tabindex="0" role="group" aria-label="${label}"><code>${formatJson(value)}</code></pre>`

export const entry = ({ anchor, description, example: shown, name, rows }: ReferenceEntry): Html =>
  html` <section id="${anchor}">
    <h3><a href="#${anchor}">${name}</a></h3>
    <p>${description}</p>
    ${fieldTable(name, rows)} ${example(`Example of ${name}`, shown)}
  </section>`

const toolSide = (method: string, { anchor, example: shown, name, rows }: ReferenceEntry): Html =>
  html` <h4 id="${anchor}">${name}</h4>
    ${fieldTable(`${name} of ${method}`, rows)} ${example(`Example of ${name} of ${method}`, shown)}`

export const toolSection = ({ anchor, description, method, name, params, replay, result }: ToolEntry): Html =>
  html` <section id="${anchor}">
    <h3>
      <a href="#${anchor}">${method}</a>
      <span class="hint">the model calls it ${name}; replay ${replay}</span>
    </h3>
    <p>${description}</p>
    ${toolSide(method, params)} ${toolSide(method, result)}
  </section>`

/** Words and what they mean. */
export const meaningTable = (
  title: string,
  words: Readonly<Record<string, string>>,
  anchorPrefix: string
): Html =>
  html`<table class="meanings">
    <caption class="unseen">
      ${title}
    </caption>
    <tbody>
      ${Object.entries(words).map(
        ([word, meaning]) =>
          html`<tr id="${anchorPrefix}-${word}">
            <th scope="row"><code>${word}</code></th>
            <td>${meaning}</td>
          </tr>`
      )}
    </tbody>
  </table>`

export const exchange = (said: Exchange): Html => {
  if (said.from === "nobody") return html`<li class="note">${said.note}</li>`
  const { frame, from } = said
  const name = frame.type === "event" ? frame.kind : frame.type
  const anchor = frame.type === "event" ? `event-${frame.kind}` : `${from}-${frame.type}`
  return html`<li class="${from}">
    <p><span class="hint">${from}</span> <a href="#${anchor}">${name}</a></p>
    ${example(`${name}, from the ${from}`, frame)}
  </li>`
}

export const contents = (
  title: string,
  entries: ReadonlyArray<{ readonly anchor: string; readonly name: string }>
): Html =>
  html`<li>
    <span>${title}</span>
    <div>${entries.map(({ anchor, name }) => html`<a href="#${anchor}">${name}</a> `)}</div>
  </li>`
