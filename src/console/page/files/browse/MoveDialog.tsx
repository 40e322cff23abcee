import { useEffect, useRef, useState } from "preact/hooks"
import { Form } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { More, useDirectories } from "../Pages.tsx"
import { parentOf } from "../Places.ts"
import type { Directory, Entry } from "../Types.ts"
import { apiPathOf } from "./Entry.ts"

interface MoveDialogProps {
  readonly entry: Entry
  readonly isCopy: boolean
  onClose(): void
  onDone(now: Entry): void
}

type Conflict = "fail" | "replace" | "rename"

/** Chooses another directory, one level after the other. */
export const MoveDialog = ({ entry, isCopy, onClose, onDone }: MoveDialogProps) => {
  const change = useChange()
  const [chain, setChain] = useState<ReadonlyArray<Directory>>([])
  const [onConflict, setOnConflict] = useState<Conflict>("fail")
  const target = chain.at(-1)
  const verb = isCopy ? "Copy" : "Move"
  const isHere = !isCopy && target !== undefined && target.path === parentOf(entry.of.path)
  const onSubmit = (): void => {
    if (target === undefined) return
    void change.run(async (ask) => {
      const of = await ask<never>(isCopy ? `${apiPathOf(entry)}/copy` : apiPathOf(entry), {
        method: isCopy ? "POST" : "PATCH",
        json:
          entry.kind === "file"
            ? { directoryId: target.id, ...(onConflict !== "fail" && { onConflict }) }
            : { parentId: target.id }
      })
      onDone({ kind: entry.kind, of })
    })
  }
  return (
    <Modal title={`${verb} ${entry.of.name}`} onClose={onClose}>
      <Form change={change} onSubmit={onSubmit}>
        <p class="move-path">
          To: <strong>{target?.path ?? "choose a directory"}</strong>
        </p>
        {chain.length > 0 && (
          <button type="button" class="plain" onClick={() => setChain(chain.slice(0, -1))}>
            Up one level
          </button>
        )}
        <Choices entry={entry} within={target} onChosen={(one) => setChain([...chain, one])} />
        {entry.kind === "file" && change.problem !== undefined && (
          <label class="conflict">
            If a file of that name is there{" "}
            <select
              value={onConflict}
              onChange={({ currentTarget }) => setOnConflict(currentTarget.value as Conflict)}
            >
              <option value="fail">do nothing</option>
              <option value="rename">keep both, under another name</option>
              <option value="replace">replace it</option>
            </select>
          </label>
        )}
        <p class="problem" role="alert">
          {change.problem}
        </p>
        <button type="submit" class="primary" disabled={change.isBusy || target === undefined || isHere}>
          {isHere ? "It is there already" : `${verb} here`}
        </button>
      </Form>
    </Modal>
  )
}

interface ChoicesProps {
  readonly entry: Entry
  readonly within: Directory | undefined
  onChosen(directory: Directory): void
}

const Choices = ({ entry, onChosen, within }: ChoicesProps) => {
  const { directories, ...rest } = useDirectories(within?.id ?? "root", 500)
  const offered = directories?.filter(({ id }) => id !== entry.of.id)
  const list = useRef<HTMLUListElement>(null)
  const shown = useRef(within)
  useEffect(() => {
    // The button that was pressed is gone, and the focus with it.
    if (shown.current !== within) list.current?.focus()
    shown.current = within
  }, [within])
  return (
    <div class="move-choices">
      <ul ref={list} tabIndex={-1} aria-label="Directories" aria-busy={offered === undefined}>
        {offered?.map((directory) => (
          <li key={directory.id}>
            <button type="button" onClick={() => onChosen(directory)}>
              <bdi>{directory.name}</bdi>
            </button>
          </li>
        ))}
        {offered?.length === 0 && <li class="hint">No directories below this one.</li>}
      </ul>
      <More {...rest} of="directories" />
    </div>
  )
}
