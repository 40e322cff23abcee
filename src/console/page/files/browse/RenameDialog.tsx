import { useState } from "preact/hooks"
import { Form, TextField } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import type { Entry } from "../Types.ts"
import { apiPathOf } from "./Entry.ts"

interface RenameDialogProps {
  readonly entry: Entry
  onClose(): void
  onDone(now: Entry): void
}

export const RenameDialog = ({ entry, onClose, onDone }: RenameDialogProps) => {
  const change = useChange()
  const [name, setName] = useState(entry.of.name)
  const onSubmit = (): void =>
    void change.run(async (ask) => {
      const of = await ask<never>(apiPathOf(entry), { method: "PATCH", json: { name } })
      onDone({ kind: entry.kind, of })
    })
  return (
    <Modal title={`Rename ${entry.of.name}`} onClose={onClose}>
      <Form change={change} submit="Rename" onSubmit={onSubmit}>
        <TextField
          label="Name"
          name="name"
          required
          autofocus
          autocapitalize="off"
          value={name}
          onInput={setName}
          onFocus={({ currentTarget }) => selectStem(currentTarget)}
        />
      </Form>
    </Modal>
  )
}

/** Selects the name without its ending, which stays as a rule. */
const selectStem = (field: HTMLInputElement): void => {
  const dot = field.value.lastIndexOf(".")
  field.setSelectionRange(0, dot > 0 ? dot : field.value.length)
}
