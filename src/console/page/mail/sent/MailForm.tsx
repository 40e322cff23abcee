import { useState } from "preact/hooks"
import { Form, TextField } from "../../parts/Form.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { emailView } from "../Words.ts"

const empty = { from: "", to: "", cc: "", bcc: "", reply_to: "", subject: "", text: "", html: "" }

type Fields = typeof empty

/** Sends a mail. */
export const MailForm = ({ onSent }: { onSent(): void }) => {
  const [fields, setFields] = useState(empty)
  const [sent, setSent] = useState<string>()
  const change = useChange()
  const field = (name: keyof Fields) => ({
    name,
    value: fields[name],
    onInput: (text: string) => setFields({ ...fields, [name]: text })
  })
  const send = (): void =>
    void change.run(async (ask) => {
      setSent(undefined)
      // Fields that were left empty are absent.
      const json = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""))
      const { message_id: id } = await ask<{ readonly message_id: string }>("/send", { method: "POST", json })
      setSent(id)
      setFields({ ...empty, from: fields.from })
      onSent()
    })
  return (
    <section aria-labelledby="mail-send-title">
      <h2 id="mail-send-title">Send a mail</h2>
      <Form class="site-form" label="Send a mail" change={change} submit="Send" onSubmit={send}>
        <TextField label="From" required placeholder="shop@example.com" {...field("from")} />
        <TextField label="To" hint="addresses, separated by commas" required {...field("to")} />
        <TextField label="Subject" required maxLength={998} {...field("subject")} />
        <TextField label="Text" rows={4} required={fields.html === ""} {...field("text")} />
        <details>
          <summary>More fields</summary>
          <div class="mail-more">
            <TextField label="HTML" hint="goes out as it is" rows={4} {...field("html")} />
            <TextField label="Cc" {...field("cc")} />
            <TextField label="Bcc" {...field("bcc")} />
            <TextField label="Reply to" {...field("reply_to")} />
          </div>
        </details>
      </Form>
      <p class="hint" role="status">
        {sent !== undefined && (
          <>
            Accepted as <ViewLink to={emailView(sent)}>{sent}</ViewLink>
          </>
        )}
      </p>
    </section>
  )
}
