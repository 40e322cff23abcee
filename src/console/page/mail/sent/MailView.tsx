import type { Email, MailAttempt } from "#schemas/mail/Email.ts"
import { useAnswer } from "../../api/UseAnswer.ts"
import { formatInstant } from "../../figures/Format.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Facts } from "../../parts/Tile.tsx"
import { useCount } from "../../parts/UseCount.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { isUnknown, isWaiting, lightOf, mailView, stateOf } from "../Words.ts"

const refreshMillis = 1_000

/** One mail: its recipients, and each attempt at them. */
export const MailView = ({ id }: { readonly id: string }) => {
  const path = `/api/v1/emails/${encodeURIComponent(id)}`
  const [since, onChanged] = useCount()
  const { data: email, refused } = useAnswer<Email>(path, refreshMillis, { since, isExpected: isUnknown })
  return (
    <>
      <p class="way-back">
        <ViewLink to={mailView}>All mails</ViewLink>
      </p>
      {email !== undefined ? (
        <Shown email={email} path={path} onChanged={onChanged} />
      ) : refused !== undefined && isUnknown(refused) ? (
        <Heading tab="Mail">No such mail</Heading>
      ) : (
        <Asking what="the mail" isRefused={refused !== undefined} />
      )}
    </>
  )
}

interface ShownProps {
  readonly email: Email
  readonly path: string
  onChanged(): void
}

const Shown = ({ email, onChanged, path }: ShownProps) => (
  <>
    <Heading tab="Mail">{email.subject}</Heading>
    <Facts
      of={[
        ["from", "From", email.from],
        ["created", "Accepted", formatInstant(email.created_at)],
        ["send-at", "To be sent", email.send_at === null ? undefined : formatInstant(email.send_at)],
        ["campaign", "Campaign", email.campaign ?? undefined]
      ]}
    />
    <p class="hint mail-id">
      <code>{email.message_id_header}</code>
    </p>
    <section class="mails" aria-labelledby="recipients-title">
      <h2 id="recipients-title">Recipients</h2>
      <ul class="mail-lines" aria-label="Recipients">
        {email.recipients.map((recipient) => (
          <li key={recipient.address}>
            <span class={`light ${lightOf(recipient.status)}`} aria-hidden="true" />
            <span>
              {recipient.address} {recipient.kind !== "to" && <span class="hint">{recipient.kind} </span>}
              <span class="hint">{stateOf(recipient)}</span>
            </span>
          </li>
        ))}
      </ul>
    </section>
    <Attempts path={path} />
    <div class="buttons">
      <a class="open-link" href={`${path}/raw`} download={`${email.id}.eml`}>
        Its source
      </a>
      {email.recipients.some(isWaiting) && (
        <Dialog
          action="Cancel what waits"
          question="Recipients that it has not gone to do not get it."
          yes="Cancel it"
          run={async (ask) => {
            await ask(`${path}/cancel`, { method: "POST" })
            onChanged()
          }}
        />
      )}
    </div>
  </>
)

const Attempts = ({ path }: { readonly path: string }) => {
  const { data } = useAnswer<{ readonly attempts: ReadonlyArray<MailAttempt> }>(
    `${path}/attempts`,
    refreshMillis,
    { isExpected: isUnknown }
  )
  return (
    <section class="mails" aria-labelledby="attempts-title" aria-busy={data === undefined}>
      <h2 id="attempts-title">Attempts</h2>
      {data?.attempts.length === 0 && <p class="hint">It has not been tried yet.</p>}
      <ol class="mail-lines" aria-label="Attempts">
        {data?.attempts.map(({ address, attempt, ended_at, outcome, reply, route }) => (
          <li key={`${address} ${attempt}`}>
            <span class={`light ${lightOfOutcome[outcome]}`} aria-hidden="true" />
            <span>
              {address}{" "}
              <span class="hint">
                {outcome} · {reply} · {route} · <time dateTime={ended_at}>{formatInstant(ended_at)}</time>
              </span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}

const lightOfOutcome = {
  sent: "up",
  deferred: "degraded",
  bounced: "down",
  route_down: "degraded",
  unknown: "degraded"
} as const satisfies Readonly<Record<MailAttempt["outcome"], string>>
