import type { Delivery, Message, MessageDetail } from "#schemas/notify/Message.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCount, formatInstant } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Facts } from "../parts/Tile.tsx"
import { headingOf, kindOf, lightOf, lightOfMessage, progressOf } from "./Words.ts"

const refreshMillis = 3_000

interface MessageListProps {
  readonly title: string
  /** of the list, with its query */
  readonly path: string
  readonly showsProject?: boolean
  readonly since?: number
}

/** The latest messages, as they come, and what became of each. */
export const MessageList = ({ path, showsProject = false, since = 0, title }: MessageListProps) => {
  const [removed, setRemoved] = useState(0)
  const { data, refused } = useAnswer<{ readonly messages: ReadonlyArray<Message> }>(path, refreshMillis, {
    since: since + removed
  })
  return (
    <section class="messages" aria-labelledby="messages-title">
      <h2 id="messages-title">{title}</h2>
      {data === undefined && <Asking what="the messages" isRefused={refused !== undefined} />}
      {data?.messages.length === 0 && <p class="hint">Nothing was sent yet.</p>}
      <ul>
        {data?.messages.map((message) => (
          <li key={message.id}>
            <Row
              message={message}
              showsProject={showsProject}
              onRemoved={() => setRemoved((before) => before + 1)}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface RowProps {
  readonly message: Message
  readonly showsProject: boolean
  onRemoved(): void
}

const Row = ({ message, onRemoved, showsProject }: RowProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class={`light ${lightOfMessage(message)}`} aria-hidden="true" />
        <span class="message-head">
          <strong>{headingOf(message)}</strong> <span class="message-text">{message.message}</span>
        </span>
        <span class="message-facts hint">
          {showsProject && <span>{message.project.name}</span>}
          <span>{progressOf(message)}</span>
          <time dateTime={message.createdAt}>{formatInstant(message.createdAt)}</time>
        </span>
      </summary>
      {isOpen && <Detail message={message} onRemoved={onRemoved} />}
    </details>
  )
}

const Detail = ({ message, onRemoved }: Omit<RowProps, "showsProject">) => {
  const path = `/api/v1/messages/${message.id}`
  const { data } = useAnswer<MessageDetail>(path, refreshMillis)
  const { data: list } = useAnswer<{
    readonly deliveries: ReadonlyArray<Delivery>
    readonly next: string | null
  }>(`${path}/deliveries?limit=20`, refreshMillis)
  const counts = data?.deliveries
  const count = (of: number | undefined) => (of === undefined || of === 0 ? undefined : formatCount(of))
  return (
    <div class="message-detail" aria-busy={data === undefined}>
      <p class="message-whole">{message.message}</p>
      <Facts
        of={[
          ["app", "Sent by", message.app],
          ["waiting", "Waiting", count(counts?.waiting)],
          ["held", "Held", count(counts?.held)],
          ["delivered", "Delivered", counts && formatCount(counts.delivered)],
          ["dead", "Given up", count(counts?.dead)],
          ["dropped", "Dropped", count(counts?.dropped)]
        ]}
      />
      <ul class="deliveries" aria-label="Deliveries">
        {list?.deliveries.map((delivery) => (
          <li key={delivery.id}>
            <span class={`light ${lightOf(delivery)}`} aria-hidden="true" />
            <span>
              {delivery.subscriber.name ?? "gone"} · {kindOf(delivery)}{" "}
              <span class="hint">{stateOf(delivery)}</span>
            </span>
          </li>
        ))}
      </ul>
      {list !== undefined && list.next !== null && <p class="hint">20 deliveries are shown.</p>}
      <div class="buttons">
        {message.viewUrl !== undefined && (
          <a class="open-link" href={message.viewUrl} target="_blank" rel="noreferrer">
            Its page
          </a>
        )}
        <Dialog
          action="Delete the message"
          question="Its page is gone, and what waits is not sent any more."
          yes="Delete it"
          run={async (ask) => {
            await ask(path, { method: "DELETE" })
            onRemoved()
          }}
        />
      </div>
    </div>
  )
}

const stateOf = (delivery: Delivery): string => {
  const { attempts, digest, lastError, nextAttemptAt, repeated, status } = delivery
  const next = status === "held" && digest === null ? "until" : "again"
  return [
    status,
    ...(digest === null ? [] : ["in a digest"]),
    ...(attempts > 1 ? [`${formatCount(attempts)} attempts`] : []),
    ...(repeated ? ["perhaps twice"] : []),
    ...(lastError === null || status === "delivered" ? [] : [lastError]),
    ...(nextAttemptAt === null ? [] : [`${next} ${formatInstant(nextAttemptAt)}`])
  ].join(" · ")
}
