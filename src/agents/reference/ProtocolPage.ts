import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { exampleConversation, type Exchange } from "#schemas/agents/ExampleConversation.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import { html, type Html } from "#src/http/Html.ts"
import {
  byeMeanings,
  closeMeanings,
  errorMeanings,
  limitMeanings,
  statusMeanings,
  toolErrorMeanings
} from "./Meanings.ts"
import {
  clientEntries,
  eventEntries,
  eventFrameRows,
  serverEntries,
  toolEntries,
  type ReferenceEntry,
  type ToolEntry
} from "./ProtocolReference.ts"
import { contents, fieldTable, meaningTable, example } from "#src/docs/page/Parts.ts"
import type { ReferencePage } from "#src/docs/page/ReferencePage.ts"

const entry = ({ anchor, description, example: shown, name, rows }: ReferenceEntry): Html =>
  html` <section id="${anchor}">
    <h3><a href="#${anchor}">${name}</a></h3>
    <p>${description}</p>
    ${fieldTable(name, rows)} ${example(`Example of ${name}`, shown)}
  </section>`

const toolSide = (method: string, { anchor, example: shown, name, rows }: ReferenceEntry): Html =>
  html` <h4 id="${anchor}">${name}</h4>
    ${fieldTable(`${name} of ${method}`, rows)} ${example(`Example of ${name} of ${method}`, shown)}`

const toolSection = ({ anchor, description, method, name, params, replay, result }: ToolEntry): Html =>
  html` <section id="${anchor}">
    <h3>
      <a href="#${anchor}">${method}</a>
      <span class="hint">the model calls it ${name}; replay ${replay}</span>
    </h3>
    <p>${description}</p>
    ${toolSide(method, params)} ${toolSide(method, result)}
  </section>`

const exchange = (said: Exchange): Html => {
  if (said.from === "nobody") return html`<li class="note">${said.note}</li>`
  const { frame, from } = said
  const name = frame.type === "event" ? frame.kind : frame.type
  const anchor = frame.type === "event" ? `event-${frame.kind}` : `${from}-${frame.type}`
  return html`<li class="${from}">
    <p><span class="hint">${from}</span> <a href="#${anchor}">${name}</a></p>
    ${example(`${name}, from the ${from}`, frame)}
  </li>`
}

const count = new Intl.NumberFormat("en")

const typed = Object.keys as <K extends string>(record: Readonly<Record<K, unknown>>) => ReadonlyArray<K>

const connecting = html`<section id="connecting">
  <h2><a href="#connecting">Connecting</a></h2>
  <p>
    Open a WebSocket at <code>/api/v1/agent/ws</code> with the header
    <code>Authorization: Bearer &lt;API_KEY&gt;</code>. Before the upgrade the server may answer with plain
    HTTP and <code>{"error": "…"}</code>: 401 for a key that is missing or not valid, 402 where neither an
    allowance, nor credits, nor a free model is there, 429 where the key asks too often, 503 while the server
    restarts or its store is away, both with <code>Retry-After</code>.
  </p>
  <p>
    Every frame is a text message with one JSON object that has a <code>type</code>. The first one is
    <a href="#client-hello">hello</a>, and the answer to it is <a href="#server-ready">ready</a>. Unknown
    fields are ignored by both sides. A client ignores events of kinds and frames of types that it does not
    know.
  </p>
  <p>
    The model runs at the server. Every tool runs at the client, which is the security boundary: it refuses
    what it must, and says so with <code>denied</code>. The server trusts nothing that a client says of
    itself, and a client trusts no <code>tool.request</code>.
  </p>
</section>`

const resuming = html`<section id="resume">
  <h2><a href="#resume">Resume</a></h2>
  <ol class="rules">
    <li>
      Frames of a session are numbered with <code>seq</code> from 1; <a href="#server-ready">ready</a>,
      <a href="#server-ping">ping</a>, <a href="#server-error">error</a> and
      <a href="#server-bye">bye</a> have no number. A client remembers the last number that it has worked off.
    </li>
    <li>
      To come back, it sends <code>resume</code> with the session's id and that number as
      <code>lastSeq</code>. Owner and workspace root have to be those of the session. The newer connection
      wins; the older one gets <code>bye</code> with <code>superseded</code>.
    </li>
    <li>
      After <code>ready</code> comes every frame behind <code>lastSeq</code>, in order. Deltas of a message
      that is whole are left out: its <a href="#event-message_end">message_end</a> says all. What cannot be
      sent again is named by <a href="#event-replay_gap">replay_gap</a>; a number is never used twice, so
      there may be a gap after the server was killed.
    </li>
    <li>
      What a frame tells of a step — a prompt's end, a message, the outcome of a call — was stored before the
      frame was sent.
    </li>
    <li>
      Calls without an outcome are asked for again: the same <code>callId</code>, <code>attempt</code> one
      higher. A client keeps a journal of calls begun and finished, written through to the disk. A finished
      call is answered with the outcome in the journal; one that still runs goes on; one that was begun and
      whose outcome is unknown is made again where <code>replay</code> is <code>safe</code>, and answered with
      <code>interrupted</code> where it is <code>never</code>.
    </li>
    <li>
      <code>journalId</code> names the journal. Where a client with another one comes, the server itself
      records <code>interrupted</code> for the <code>never</code> calls that the earlier client took.
    </li>
    <li>
      While nobody is attached the model finishes its answer, and then the work waits. A session is live for
      15 minutes without a client, and can be resumed for 30 days after its last sign of life,
      <code>bye</code> included; one that its owner has ended cannot.
    </li>
  </ol>
</section>`

const limits = html`<section id="limits">
  <h2><a href="#limits">Limits</a></h2>
  <p><code>ready.limits</code> tells those that a client needs.</p>
  <table class="meanings">
    <caption class="unseen">
      Limits
    </caption>
    <tbody>
      ${typed(agentLimits).map(
        (name) =>
          html`<tr id="limit-${name}">
            <th scope="row"><code>${name}</code></th>
            <td class="number">${count.format(agentLimits[name])}</td>
            <td>${limitMeanings[name]}</td>
          </tr>`
      )}
    </tbody>
  </table>
</section>`

const closing = html`<section id="close-codes">
  <h2><a href="#close-codes">Close codes</a></h2>
  <p>
    The <a href="#server-bye">bye</a> before it says whether the session can be resumed. Where none came,
    because the connection broke, it can.
  </p>
  ${meaningTable("Close codes", Object.fromEntries(typed(closeCodes).map((name) => [closeCodes[name], closeMeanings[name]])), "close")}
  <h3 id="bye-reasons">Reasons of the server’s bye</h3>
  ${meaningTable("Reasons of bye", byeMeanings, "bye")}
</section>`

const codes = html`<section id="error-codes">
  <h2><a href="#error-codes">Error codes</a></h2>
  <p>Of <a href="#server-error">error</a> and of <code>prompt.done.error</code>.</p>
  ${meaningTable("Error codes", errorMeanings, "error")}
  <h3 id="tool-error-codes">Of tools</h3>
  <p>Of <code>tool.result.error</code>. The model is told, and decides what to do.</p>
  ${meaningTable("Error codes of tools", toolErrorMeanings, "tool-error")}
  <h3 id="statuses">Statuses of prompt.done</h3>
  ${meaningTable("Statuses of prompt.done", statusMeanings, "status")}
</section>`

const overview = html`<nav class="contents" aria-label="Contents">
  <ul>
    ${contents("From client", clientEntries)} ${contents("From server", serverEntries)}
    ${contents("Events", eventEntries)}
    ${contents(
      "Tools",
      toolEntries.map(({ anchor, method }) => ({ anchor, name: method }))
    )}
    ${contents("Rules", [
      { anchor: "connecting", name: "Connecting" },
      { anchor: "resume", name: "Resume" },
      { anchor: "limits", name: "Limits" },
      { anchor: "close-codes", name: "Close codes" },
      { anchor: "error-codes", name: "Error codes" },
      { anchor: "conversation", name: "A conversation" }
    ])}
  </ul>
</nav>`

const frames = html`<section id="client-frames">
    <h2><a href="#client-frames">Client to server</a></h2>
    ${clientEntries.map(entry)}
  </section>
  <section id="server-frames">
    <h2><a href="#server-frames">Server to client</a></h2>
    ${serverEntries.map(entry)}
  </section>
  <section id="events">
    <h2><a href="#events">Events</a></h2>
    <p>Frames of type <code>event</code> tell what happens. Each has these fields, and those of its kind.</p>
    ${fieldTable("event", eventFrameRows)} ${eventEntries.map(entry)}
  </section>
  <section id="tools">
    <h2><a href="#tools">Tools</a></h2>
    <p>
      What <code>params</code> of a <a href="#server-tool.request">tool.request</a> and <code>result</code> of
      a <a href="#client-tool.result">tool.result</a> are, by method. A call with replay <code>safe</code> may
      be made again. Requests come in the order of the model's message; a client makes those of one file, and
      commands with all before and behind them, in that order, and others at once. A call's time runs anew
      once one before it is over.
    </p>
    ${toolEntries.map(toolSection)}
  </section>`

const conversation = html`<section id="conversation">
  <h2><a href="#conversation">A conversation</a></h2>
  <ol class="conversation">
    ${exampleConversation.map(exchange)}
  </ol>
</section>`

/** The protocol of the agents, for people. */
export const protocolPage = {
  path: "/docs/agent",
  title: "Agent protocol",
  main: html`
    <h1>Agent protocol 1</h1>
    <p class="lead">
      What is said on the WebSocket of a coding agent’s session. Made from the schemas that the server decodes
      with; <a href="/docs/agent.json">the same as JSON Schema</a>.
    </p>
    ${overview} ${connecting} ${resuming} ${frames} ${closing} ${codes} ${limits} ${conversation}
  `
} as const satisfies ReferencePage
