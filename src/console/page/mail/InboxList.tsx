import { useState } from "preact/hooks"
import type { InboxMail } from "#schemas/mail/Email.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatInstant } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { InboxCopy } from "./InboxCopy.tsx"

const path = "/api/v1/emails/inbox"
const refreshMillis = 1_000

interface InboxListProps {
  readonly since: number
}

/** The mail that the sandbox took, as it comes. */
export const InboxList = ({ since }: InboxListProps) => {
  const [cleared, setCleared] = useState(0)
  const { data, refused } = useAnswer<{ readonly emails: ReadonlyArray<InboxMail> }>(
    `${path}?limit=50`,
    refreshMillis,
    { since: since + cleared }
  )
  return (
    <section class="mails" aria-labelledby="inbox-title">
      <h2 id="inbox-title">Inbox of the sandbox</h2>
      <p class="hint">Mail stays on this server, and lands here, until a relay is named by SMTP_URL.</p>
      {data === undefined && <Asking what="the inbox" isRefused={refused !== undefined} />}
      {data?.emails.length === 0 && <p class="hint">No mail came yet.</p>}
      <ul>
        {data?.emails.map((mail) => (
          <li key={mail.id}>
            <Row mail={mail} />
          </li>
        ))}
      </ul>
      {data !== undefined && data.emails.length > 0 && (
        <Dialog
          action="Empty the inbox"
          question="The copies are deleted; what became of the mails is still listed."
          yes="Empty it"
          run={async (ask) => {
            await ask(path, { method: "DELETE" })
            setCleared((before) => before + 1)
          }}
        />
      )}
    </section>
  )
}

const Row = ({ mail }: { readonly mail: InboxMail }) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>{mail.subject}</strong>{" "}
        <span class="hint">
          {mail.from} to {mail.address}
        </span>{" "}
        <time class="hint" dateTime={mail.received_at}>
          {formatInstant(mail.received_at)}
        </time>
      </summary>
      {isOpen && <InboxCopy id={mail.id} />}
    </details>
  )
}
