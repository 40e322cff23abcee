import { useState } from "preact/hooks"
import type { Email, MailAttempt } from "#schemas/mail/Email.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCount, formatInstant } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { lightOf, progressOf, stateOf } from "./Words.ts"

const refreshMillis = 2_000
const shown = 20

interface MailListProps {
  /** a new value reads the list anew */
  readonly since: number
}

/** The latest mails, and what became of each recipient. */
export const MailList = ({ since }: MailListProps) => {
  const { data, refused } = useAnswer<{
    readonly emails: ReadonlyArray<Email>
    readonly meta: { readonly total: number }
  }>(`/api/v1/emails?limit=${shown}`, refreshMillis, { since })
  return (
    <section class="mails" aria-labelledby="mails-title">
      <h2 id="mails-title">Sent</h2>
      {data === undefined && <Asking what="the mails" isRefused={refused !== undefined} />}
      {data?.emails.length === 0 && <p class="hint">Nothing was sent yet.</p>}
      <ul>
        {data?.emails.map((email) => (
          <li key={email.id}>
            <Row email={email} />
          </li>
        ))}
      </ul>
      {data !== undefined && data.meta.total > shown && (
        <p class="hint">
          The latest {shown} of {formatCount(data.meta.total)} are shown.
        </p>
      )}
    </section>
  )
}

const Row = ({ email }: { readonly email: Email }) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>{email.subject}</strong> <span class="hint">{progressOf(email)}</span>{" "}
        <time class="hint" dateTime={email.created_at}>
          {formatInstant(email.created_at)}
        </time>
      </summary>
      {isOpen && <Detail email={email} />}
    </details>
  )
}

const Detail = ({ email }: { readonly email: Email }) => {
  const { data } = useAnswer<{ readonly attempts: ReadonlyArray<MailAttempt> }>(
    `/api/v1/emails/${email.id}/attempts`,
    refreshMillis
  )
  return (
    <div class="mail-detail">
      <p class="hint">
        From {email.from}, <code>{email.message_id_header}</code>
      </p>
      <ul aria-label="Recipients">
        {email.recipients.map((recipient) => (
          <li key={recipient.address}>
            <span class={`light ${lightOf(recipient.status)}`} aria-hidden="true" /> {recipient.address}{" "}
            <span class="hint">{stateOf(recipient)}</span>
          </li>
        ))}
      </ul>
      <ul aria-label="Attempts">
        {data?.attempts.map(({ address, attempt, ended_at, outcome, reply, route }) => (
          <li key={`${address} ${attempt}`} class="hint">
            {formatInstant(ended_at)} · {address} · {route} · {outcome} · {reply}
          </li>
        ))}
      </ul>
    </div>
  )
}
