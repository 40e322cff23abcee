import type { Email } from "#schemas/mail/Email.ts"
import { useAnswer } from "../../api/UseAnswer.ts"
import { formatCount, formatInstant } from "../../figures/Format.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useCount } from "../../parts/UseCount.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { emailView, lightOfMail, progressOf } from "../Words.ts"
import { MailForm } from "./MailForm.tsx"

const refreshMillis = 2_000
const shown = 50

/** A form that sends, and the latest mails with what became of each. */
export const SentMail = () => {
  const [since, onSent] = useCount()
  const { data, refused } = useAnswer<{
    readonly emails: ReadonlyArray<Email>
    readonly meta: { readonly total: number }
  }>(`/api/v1/emails?limit=${shown}`, refreshMillis, { since })
  return (
    <>
      <Heading>Mail</Heading>
      <MailForm onSent={onSent} />
      <section class="mails" aria-labelledby="mails-title" aria-busy={data === undefined}>
        <h2 id="mails-title">Sent</h2>
        {data === undefined && <Asking what="the mails" isRefused={refused !== undefined} />}
        {data?.emails.length === 0 && <p class="hint">Nothing was sent yet.</p>}
        <ul class="links" aria-label="Sent">
          {data?.emails.map((email) => (
            <li key={email.id}>
              <ViewLink to={emailView(email.id)} class="mail-row">
                <span class={`light ${lightOfMail(email)}`} aria-hidden="true" />
                <strong>{email.subject}</strong>
                <span class="mail-facts hint">
                  <span>{toOf(email)}</span>
                  <span>{progressOf(email)}</span>
                  <time dateTime={email.created_at}>{formatInstant(email.created_at)}</time>
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
      </section>
    </>
  )
}

/** `to ada@example.org`, `to ada@example.org and 2 others` */
const toOf = ({ recipients: [first, ...others] }: Email): string => {
  const more =
    others.length === 0 ? "" : ` and ${formatCount(others.length)} other${others.length === 1 ? "" : "s"}`
  return `to ${first?.address ?? "no address"}${more}`
}
