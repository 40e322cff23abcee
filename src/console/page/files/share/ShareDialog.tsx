import { useState } from "preact/hooks"
import { Code } from "../../parts/Code.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import type { Entry } from "../Types.ts"
import { Choices } from "./Choices.tsx"
import { LinkList } from "./LinkList.tsx"
import { factsOf, path, type ShareLink } from "./ShareLink.ts"

interface ShareDialogProps {
  readonly entry: Entry
  onClose(): void
}

/** Downloads, by the names of the choices; 0: any number. */
const caps = [
  { value: 1, label: "Once" },
  { value: 3, label: "3 times" },
  { value: 10, label: "10 times" },
  { value: 0, label: "Any number" }
] as const

/** Minutes; 0: no end. */
const ends = [
  { value: 60, label: "1 hour" },
  { value: 480, label: "8 hours" },
  { value: 1440, label: "24 hours" },
  { value: 0, label: "No end" }
] as const

/** Makes a link to a file or directory, and shows those that are there. */
export const ShareDialog = ({ entry, onClose }: ShareDialogProps) => {
  const change = useChange()
  const [cap, setCap] = useState<number>(1)
  const [minutes, setMinutes] = useState<number>(1440)
  const [password, setPassword] = useState("")
  const [label, setLabel] = useState("")
  const [isPinned, setPinned] = useState(false)
  const [made, setMade] = useState<ShareLink>()
  const [count, setCount] = useState(0)
  const isFile = entry.kind === "file"
  const onSubmit = (): void => {
    const json = {
      ...(isFile ? { fileId: entry.of.id } : { directoryId: entry.of.id }),
      ...(cap === 1 ? { singleUse: true } : cap > 0 && { maxRequests: cap }),
      ...(minutes > 0 && { expiresInMinutes: minutes }),
      ...(password !== "" && { password }),
      ...(label.trim() !== "" && { label: label.trim() }),
      ...(isFile && isPinned && { pinned: true })
    }
    void change.run(async (ask) => {
      setMade(await ask<ShareLink>(path, { method: "POST", json }))
      setPassword("")
      setCount((before) => before + 1)
    })
  }
  return (
    <Modal title={`Share ${entry.of.name}`} onClose={onClose}>
      <Form change={change} class="share-form" submit="Make a link" onSubmit={onSubmit}>
        <Choices<number> legend="Works" of={caps} chosen={cap} onChosen={setCap} />
        <Choices<number> legend="Ends after" of={ends} chosen={minutes} onChosen={setMinutes} />
        <TextField
          label="Password"
          hint="Empty: none"
          name="password"
          maxLength={256}
          autocomplete="off"
          value={password}
          onInput={setPassword}
        />
        <TextField
          label="Label"
          hint="For you alone"
          name="label"
          autocomplete="off"
          value={label}
          onInput={setLabel}
        />
        {isFile && (
          <label class="check">
            <input
              type="checkbox"
              checked={isPinned}
              onChange={({ currentTarget }) => setPinned(currentTarget.checked)}
            />
            This version for ever, also when the file has a newer one
          </label>
        )}
      </Form>
      {made !== undefined && (
        <div class="share-made" role="status">
          <p>
            <strong>The link is made.</strong> <span class="hint">{factsOf(made).join(" · ")}</span>
          </p>
          <Code of="new link" text={made.url} />
          {made.maxRequests !== null && (
            <p class="hint">
              Previews of messengers and mail scanners do not use it up: people see a page with a button
              first.
            </p>
          )}
        </div>
      )}
      <LinkList title="Links" of={entry} since={count} />
    </Modal>
  )
}
