import { useState } from "preact/hooks"
import { Form, TextField } from "../../parts/Form.tsx"
import { useChange } from "../../parts/UseChange.ts"

const empty = { address: "", note: "" }

/** Suppresses an address, or all of a domain. */
export const NewSuppression = ({ onAdded }: { onAdded(): void }) => {
  const change = useChange()
  const [fields, setFields] = useState(empty)
  const onSubmit = (): void =>
    void change.run(async (ask) => {
      const { address, note } = fields
      const json = { address: address.trim(), ...(note !== "" && { note }) }
      await ask("/api/v1/emails/suppressions", { method: "POST", json })
      setFields(empty)
      onAdded()
    })
  const text = (name: keyof typeof fields) => ({
    name,
    value: fields[name],
    onInput: (typed: string): void => setFields({ ...fields, [name]: typed })
  })
  return (
    <Form class="site-form" label="New suppression" change={change} submit="Suppress it" onSubmit={onSubmit}>
      <TextField
        label="Address"
        hint="or *@ and a domain: all addresses there"
        required
        maxLength={254}
        autocapitalize="off"
        {...text("address")}
      />
      <TextField label="Note" maxLength={200} {...text("note")} />
    </Form>
  )
}
