import type { AddedSubscriber, NewSubscriber } from "#schemas/notify/Subscriber.ts"
import { useState } from "preact/hooks"
import { Code } from "../parts/Code.tsx"
import { Field, Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"

interface AddSubscriberProps {
  /** of the project */
  readonly path: string
  onAdded(): void
}

type Kind = NonNullable<NewSubscriber["kind"]>

const kinds: ReadonlyArray<readonly [value: Kind | "", words: string]> = [
  ["", "Slack or Discord, else a program: by its address"],
  ["slack", "Mattermost, Rocket.Chat or another that takes Slack’s form"],
  ["discord", "Discord"],
  ["webhook", "A program"]
]

/** Subscribes a webhook of the owner's, of a team's chat or a program: it needs no confirmation. */
export const AddSubscriber = ({ onAdded, path }: AddSubscriberProps) => {
  const change = useChange()
  const [name, setName] = useState("")
  const [url, setUrl] = useState("")
  const [kind, setKind] = useState<Kind | "">("")
  const [added, setAdded] = useState<AddedSubscriber>()
  const onSubmit = (): void => {
    const json = { name, url: url.trim(), ...(kind !== "" && { kind }) }
    void change.run(async (ask) => {
      setAdded(await ask(`${path}/subscribers`, { method: "POST", json }))
      setName("")
      setUrl("")
      onAdded()
    })
  }
  return (
    <details class="new-key">
      <summary>Add a team chat or a program</summary>
      <Form class="site-form" label="New subscriber" change={change} submit="Add it" onSubmit={onSubmit}>
        <TextField label="Name" required maxLength={100} name="name" value={name} onInput={setName} />
        <TextField
          label="Address of its webhook"
          hint="It is shown to nobody afterwards"
          type="url"
          required
          maxLength={2_048}
          autocomplete="off"
          placeholder="https://hooks.slack.com/services/…"
          name="url"
          value={url}
          onInput={setUrl}
        />
        <Field label="It belongs to">
          {(id) => (
            <select
              id={id}
              value={kind}
              onChange={({ currentTarget }) =>
                setKind(kinds.find(([value]) => value === currentTarget.value)?.[0] ?? "")
              }
            >
              {kinds.map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        {added !== undefined && <Added {...added} />}
      </Form>
    </details>
  )
}

const Added = ({ name, secret }: Pick<AddedSubscriber, "name" | "secret">) => (
  <div role="status">
    <p>{name} gets messages from now on.</p>
    {secret !== undefined && (
      <>
        <p>
          <strong>It can tell by this secret that they are genuine, shown now and never again:</strong>
        </p>
        <Code of="secret" text={secret} />
      </>
    )}
  </div>
)
