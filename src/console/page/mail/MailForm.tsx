import { useState } from "preact/hooks"
import { Form, TextField } from "../parts/Form.tsx"
import { useChange } from "../parts/UseChange.ts"

interface MailFormProps {
  onSent(): void
}

const empty = { from: "", to: "", subject: "", text: "" }

/** Sends a mail. */
export const MailForm = ({ onSent }: MailFormProps) => {
  const [fields, setFields] = useState(empty)
  const [said, setSaid] = useState<string>()
  const change = useChange()
  const field = (name: keyof typeof empty) => ({
    name,
    required: true,
    value: fields[name],
    onInput: (text: string) => setFields({ ...fields, [name]: text })
  })
  const send = (): void =>
    void change.run(async (ask) => {
      setSaid(undefined)
      const { message_id: id } = await ask<{ readonly message_id: string }>("/send", {
        method: "POST",
        json: fields
      })
      setSaid(`Accepted as ${id}`)
      setFields({ ...empty, from: fields.from })
      onSent()
    })
  return (
    <section aria-labelledby="mail-send-title">
      <h2 id="mail-send-title">Send a mail</h2>
      <Form change={change} submit="Send" onSubmit={send}>
        <TextField label="From" {...field("from")} />
        <TextField label="To" hint="addresses, separated by commas" {...field("to")} />
        <TextField label="Subject" {...field("subject")} />
        <TextField label="Text" rows={4} {...field("text")} />
      </Form>
      <p class="hint" role="status">
        {said}
      </p>
    </section>
  )
}
