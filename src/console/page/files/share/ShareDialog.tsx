import { useState } from "preact/hooks"
import { Code } from "../../parts/Code.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import type { Entry } from "../Types.ts"
import { Choices } from "./Choices.tsx"
import { useCount } from "../../parts/UseCount.ts"
import { LinkList } from "./LinkList.tsx"
import { factsOf, path, type ShareLink } from "./ShareLink.ts"

interface ShareDialogProps {
  readonly entry: Entry
  onClose(): void
}

/** Downloads, by the names of the choices; 0: no limit. */
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

interface Terms {
  readonly cap: number
  readonly minutes: number
  readonly password: string
  readonly label: string
  readonly isPinned: boolean
}

const bodyOf = ({ kind, of }: Entry, { cap, isPinned, label, minutes, password }: Terms): object => ({
  ...(kind === "file" ? { fileId: of.id } : { directoryId: of.id }),
  ...(cap === 1 ? { singleUse: true } : cap > 0 && { maxRequests: cap }),
  ...(minutes > 0 && { expiresInMinutes: minutes }),
  ...(password !== "" && { password }),
  ...(label.trim() !== "" && { label: label.trim() }),
  ...(kind === "file" && isPinned && { pinned: true })
})

/** Makes a link to a file or directory, and shows those that are there. */
export const ShareDialog = ({ entry, onClose }: ShareDialogProps) => {
  const [made, setMade] = useState<ShareLink>()
  const [count, onCount] = useCount()
  const onMade = (link: ShareLink): void => {
    setMade(link)
    onCount()
  }
  return (
    <Modal title={`Share ${entry.of.name}`} onClose={onClose}>
      <NewLink entry={entry} onMade={onMade} />
      {made !== undefined && <Made link={made} />}
      <LinkList title="Links" of={entry} since={count} />
    </Modal>
  )
}

interface NewLinkProps {
  readonly entry: Entry
  onMade(link: ShareLink): void
}

const NewLink = ({ entry, onMade }: NewLinkProps) => {
  const change = useChange()
  const [terms, setTerms] = useState<Terms>({
    cap: 1,
    minutes: 1440,
    password: "",
    label: "",
    isPinned: false
  })
  const set = (changed: Partial<Terms>): void => setTerms((before) => ({ ...before, ...changed }))
  const onSubmit = (): void =>
    void change.run(async (ask) => {
      onMade(await ask<ShareLink>(path, { method: "POST", json: bodyOf(entry, terms) }))
      set({ password: "" })
    })
  return (
    <Form change={change} submit="Make a link" onSubmit={onSubmit}>
      <Choices<number> legend="Works" of={caps} chosen={terms.cap} onChosen={(cap) => set({ cap })} />
      <Choices<number>
        legend="Ends after"
        of={ends}
        chosen={terms.minutes}
        onChosen={(minutes) => set({ minutes })}
      />
      <TextField
        label="Password"
        hint="Empty: none"
        name="password"
        maxLength={256}
        autocomplete="off"
        value={terms.password}
        onInput={(password) => set({ password })}
      />
      <TextField
        label="Label"
        hint="For you alone"
        name="label"
        maxLength={200}
        autocomplete="off"
        value={terms.label}
        onInput={(label) => set({ label })}
      />
      {entry.kind === "file" && (
        <label class="check">
          <input
            type="checkbox"
            checked={terms.isPinned}
            onChange={({ currentTarget }) => set({ isPinned: currentTarget.checked })}
          />
          This version for ever, also when the file has a newer one
        </label>
      )}
    </Form>
  )
}

const Made = ({ link }: { readonly link: ShareLink }) => (
  <div class="share-made" role="status">
    <p>
      <strong>The link is made.</strong> <span class="hint">{factsOf(link).join(" · ")}</span>
    </p>
    <Code of="new link" text={link.url} />
    {link.maxRequests !== null && (
      <p class="hint">
        Previews of messengers and mail scanners do not use it up: people see a page with a button first.
      </p>
    )}
  </div>
)
