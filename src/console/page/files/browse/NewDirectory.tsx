import { useState } from "preact/hooks"
import { Form, TextField } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import type { Directory } from "../Types.ts"

interface NewDirectoryProps {
  /** undefined: the root */
  readonly parent: Directory | undefined
  onMade(): void
}

/** Makes a directory where one is. */
export const NewDirectory = (props: NewDirectoryProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        New directory
      </button>
      {isOpen && <Asked {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

const Asked = ({ onClose, onMade, parent }: NewDirectoryProps & { onClose(): void }) => {
  const change = useChange()
  const [name, setName] = useState("")
  const onSubmit = async (): Promise<void> => {
    const json = { name, parentId: parent?.id ?? null }
    const isMade = await change.run((ask) => ask("/api/directories", { method: "POST", json }))
    if (!isMade) return
    onMade()
    onClose()
  }
  return (
    <Modal title="New directory" onClose={onClose}>
      <Form change={change} submit="Make it" onSubmit={() => void onSubmit()}>
        <TextField
          label="Name"
          {...(parent === undefined && { hint: "Letters, digits, dots, underscores and hyphens" })}
          name="name"
          required
          autofocus
          autocapitalize="off"
          value={name}
          onInput={setName}
        />
      </Form>
    </Modal>
  )
}
