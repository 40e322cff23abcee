import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Code } from "../../parts/Code.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import type { Entry } from "../Types.ts"
import { formatBytes, formatWhen } from "../Words.ts"
import { factsOf, isOver, path, selecting, type SharedLink, type ShareLink } from "./ShareLink.ts"
import { isClosed } from "../Closed.ts"
import { More, usePages } from "../Pages.tsx"
import { useCount } from "../../parts/UseCount.ts"

interface LinkListProps {
  readonly title: string
  /** undefined: all of the user */
  readonly of?: Entry
  /** counts up with changes */
  readonly since?: number
}

const refreshMillis = 15_000

/** As many as the server lists. Source: contract/files#links. */
const listedDownloads = 100

/** Share links with their uses; each can be copied and revoked. */
export const LinkList = ({ of, since = 0, title }: LinkListProps) => {
  const [changes, onChanged] = useCount()
  const { pages, refused, ...rest } = usePages<{
    readonly links: ReadonlyArray<ShareLink>
    readonly cursor: string | null
  }>(`${path}?limit=100${of === undefined ? "" : selecting(of)}`, refreshMillis, {
    since: changes * 1_000_000 + since,
    isExpected: isClosed
  })
  const links = pages?.flatMap((page) => page.links)
  return (
    <section
      class="items share-links"
      aria-label={title}
      aria-busy={links === undefined && refused === undefined}
    >
      <h2>{title}</h2>
      {links === undefined && refused !== undefined && <p class="hint">{refused.message}.</p>}
      {links?.length === 0 && (
        <p class="hint">
          {of === undefined
            ? "No links yet. Open a file or a directory and choose Share."
            : "No links lead here yet."}
        </p>
      )}
      <ul>
        {links?.map((link) => (
          <Row key={link.token} link={link} onRevoked={onChanged} />
        ))}
      </ul>
      <More {...rest} of="links" />
    </section>
  )
}

const Row = ({ link, onRevoked }: { readonly link: ShareLink; onRevoked(): void }) => {
  const { name, token, url } = link
  return (
    <li class={isOver(link) ? "link-over" : undefined}>
      <span class="item-words">
        <strong>{name ?? "something deleted"}</strong>
        <span class="item-facts hint">
          {factsOf(link).map((fact, index) => (
            <span key={index}>{fact}</span>
          ))}
        </span>
      </span>
      {link.uses > 0 && <Downloads token={token} uses={link.uses} />}
      <Code of={`link to ${name ?? "something deleted"}`} text={url} />
      <Dialog
        action="Revoke"
        question="The link works nowhere within a second."
        yes="Revoke it"
        run={async (ask) => {
          await ask(`${path}/${token}`, { method: "DELETE" })
          onRevoked()
        }}
      />
    </li>
  )
}

/** The downloads of a link: the time of each, how far it came, and the client. */
const Downloads = ({ token, uses }: { readonly token: string; readonly uses: number }) => {
  const [isOpen, setOpen] = useState(false)
  const { data } = useAnswer<SharedLink>(isOpen ? `${path}/${token}` : undefined, refreshMillis, {
    since: uses
  })
  return (
    <details class="downloads" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Downloads</summary>
      <ul aria-busy={isOpen && data === undefined}>
        {data?.downloads.map(({ address, agent, bytes, complete, startedAt }, index) => (
          <li key={index} class="hint">
            <time dateTime={startedAt}>{formatWhen(startedAt)}</time> · {formatBytes(bytes)}
            {complete ? "" : ", not to the end"} · {address} · {agent === "" ? "unnamed program" : agent}
          </li>
        ))}
        {data?.downloads.length === listedDownloads && (
          <li class="hint">These are the last {listedDownloads}.</li>
        )}
        {data?.downloads.length === 0 && <li class="hint">None in the last 90 days.</li>}
      </ul>
    </details>
  )
}
