import type { FieldRow } from "./FieldRows.ts"
import { formatJson } from "./FormatJson.ts"
import { html, type Html } from "#src/http/Html.ts"

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
    : tableOfFields(`Fields of ${name}`, rows)

/** A table of fields, parameters or headers. */
export const tableOfFields = (caption: string, rows: ReadonlyArray<FieldRow>): Html =>
  html`<table class="fields">
    <caption class="unseen">
      ${caption}
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

/** Words and their meanings. */
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

export const contents = (
  title: string,
  entries: ReadonlyArray<{ readonly anchor: string; readonly name: string }>
): Html =>
  html`<li>
    <span>${title}</span>
    <div>${entries.map(({ anchor, name }) => html`<a href="#${anchor}">${name}</a> `)}</div>
  </li>`
