import type { SubscriberList } from "#schemas/notify/Subscriber.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatInstant } from "../figures/Format.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { Items } from "./Items.tsx"
import { choiceOf, kindOf } from "./Words.ts"

type Subscriber = SubscriberList["subscribers"][number]

const refreshMillis = 5_000

interface SubscribersProps {
  /** of the project */
  readonly path: string
  readonly since: number
  onChanged(): void
}

/** Names, kinds of channels and their states; addresses are told to none. */
export const Subscribers = ({ onChanged, path, since }: SubscribersProps) => {
  const { data } = useAnswer<SubscriberList>(`${path}/subscribers?limit=100`, refreshMillis, { since })
  const rest = (data?.meta.total ?? 0) - (data?.subscribers.length ?? 0)
  return (
    <>
      <Items<Subscriber>
        title="Subscribers"
        items={data?.subscribers}
        keyOf={({ id }) => id}
        nameOf={({ name }) => name}
        factsOf={(subscriber) => [...factsOf(subscriber), `joined ${formatInstant(subscriber.joinedAt)}`]}
        empty="Nobody has joined yet."
        actionOf={({ id, name }) => (
          <Dialog
            action="Remove"
            question={`Later messages do not reach ${name}, who can join again.`}
            yes="Remove"
            no="Keep"
            run={async (ask) => {
              await ask(`${path}/subscribers/${id}`, { method: "DELETE" })
              onChanged()
            }}
          />
        )}
      />
      {rest > 0 && <p class="hint">The latest 100 are shown, and {rest} more have joined.</p>}
    </>
  )
}

const factsOf = ({ channels, delivery }: Subscriber): ReadonlyArray<string> => {
  const choice = choiceOf(delivery)
  const shown = channels
    .map((channel) =>
      channel.state === "active" ? kindOf(channel) : `${kindOf(channel)} (${channel.state})`
    )
    .join(", ")
  return [channels.length === 0 ? "no channel" : shown, ...(choice === undefined ? [] : [choice])]
}
