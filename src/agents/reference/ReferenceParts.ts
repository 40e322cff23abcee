import type { Exchange } from "#schemas/agents/ExampleConversation.ts"
import { html, type Html } from "#src/docs/page/Html.ts"
import { example, fieldTable } from "#src/docs/page/Parts.ts"
import type { ReferenceEntry, ToolEntry } from "./ProtocolReference.ts"

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
