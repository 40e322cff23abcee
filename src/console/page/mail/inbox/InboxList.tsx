import type { InboxMail } from "#schemas/mail/Email.ts"
import { useAnswer } from "../../api/UseAnswer.ts"
import { formatCount, formatInstant } from "../../figures/Format.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useCount } from "../../parts/UseCount.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { copyView } from "../Words.ts"

const path = "/api/v1/emails/inbox"
/** A mail is seen within a second. */
const refreshMillis = 500
const shown = 50

/** The mail that the sandbox took, as it comes. */
export const InboxList = () => {
  const [since, onCleared] = useCount()
  const { data, refused } = useAnswer<{
    readonly emails: ReadonlyArray<InboxMail>
    readonly meta: { readonly total: number }
  }>(`${path}?limit=${shown}`, refreshMillis, { since })
  return (
    <section class="mails mail-inbox" aria-busy={data === undefined}>
      <Heading tab="Mail">Inbox of the sandbox</Heading>
      <p class="hint">Mail stays on this server, and lands here, until a relay is named by SMTP_URL.</p>
      {data === undefined && <Asking what="the inbox" isRefused={refused !== undefined} />}
      {data?.emails.length === 0 && <p class="hint">No mail came yet.</p>}
      <ul class="links" aria-label="Inbox">
        {data?.emails.map(({ address, from, id, received_at, subject }) => (
          <li key={id}>
            <ViewLink to={copyView(id)} class="mail-row">
              <span class="light up" aria-hidden="true" />
              <strong>{subject}</strong>
              <span class="mail-facts hint">
                <span>
                  {from} to {address}
                </span>
                <time dateTime={received_at}>{formatInstant(received_at)}</time>
              </span>
            </ViewLink>
          </li>
        ))}
      </ul>
      {data !== undefined && data.meta.total > shown && (
        <p class="hint">
          The latest {shown} of {formatCount(data.meta.total)} are shown.
        </p>
      )}
      {data !== undefined && data.emails.length > 0 && (
        <Dialog
          action="Empty the inbox"
          question="The copies are deleted; what became of the mails is still listed."
          yes="Empty it"
          run={async (ask) => {
            await ask(path, { method: "DELETE" })
            onCleared()
          }}
        />
      )}
    </section>
  )
}
