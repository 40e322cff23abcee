import { useState } from "preact/hooks"
import { Menu } from "../../parts/Menu.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { useNavigation } from "../../view/Navigation.tsx"
import { FlagDialog } from "../devices/FlagDialog.tsx"
import { directoryView, parentOf } from "../Places.ts"
import { ShareDialog } from "../share/ShareDialog.tsx"
import { restore } from "../trash/TrashApi.ts"
import type { Entry } from "../Types.ts"
import { apiPathOf, downloadOf, isBucket, isFixed } from "./Entry.ts"
import { MoveDialog } from "./MoveDialog.tsx"
import type { Noticed } from "./Notice.tsx"
import { RenameDialog } from "./RenameDialog.tsx"

interface EntryActionsProps {
  readonly entry: Entry
  /** on the button */
  readonly sign?: string
  /** it is the page that is open: after a move the page follows it */
  readonly isOpen?: boolean
  onChanged(): void
  onNotice(noticed: Noticed): void
}

const dialogs = ["share", "rename", "move", "copy", "flag"] as const

type DialogName = (typeof dialogs)[number]

const titles: Readonly<Record<DialogName, string>> = {
  share: "Share …",
  rename: "Rename …",
  move: "Move …",
  copy: "Copy …",
  flag: "Devices …"
}

const isOffered = (entry: Entry, name: DialogName): boolean => {
  if (isFixed(entry)) return name === "share"
  if (name === "copy") return entry.kind === "file"
  return name !== "move" || entry.kind === "file" || !isBucket(entry.of)
}

/** All that can be done with a file or a directory. */
export const EntryActions = ({
  entry,
  isOpen = false,
  onChanged,
  onNotice,
  sign = "⋯"
}: EntryActionsProps) => {
  const { go } = useNavigation()
  const [dialog, setDialog] = useState<DialogName>()
  const { change, remove } = useRemoval({ entry, isOpen, onChanged, onNotice })
  const { name } = entry.of
  const onClose = (): void => setDialog(undefined)
  /** `now`: where it is after the change */
  const onDone = (now: Entry): void => {
    onClose()
    if (isOpen && now.kind === "directory") go(directoryView(now.of.path), true)
    onChanged()
  }
  const common = { entry, onClose, onDone }
  return (
    <>
      <Menu label={`Actions for ${name}`} sign={sign}>
        <a href={downloadOf(entry)} download>
          {entry.kind === "file" ? "Download" : "Download as .tgz"}
        </a>
        {dialogs
          .filter((one) => isOffered(entry, one))
          .map((one) => (
            <button key={one} type="button" onClick={() => setDialog(one)}>
              {titles[one]}
            </button>
          ))}
        {!isFixed(entry) && (
          <button type="button" disabled={change.isBusy} onClick={() => void remove()}>
            Delete
          </button>
        )}
      </Menu>
      {change.problem !== undefined && (
        <p class="problem" role="alert">
          {change.problem}
        </p>
      )}
      {dialog === "share" && <ShareDialog entry={entry} onClose={onClose} />}
      {dialog === "rename" && <RenameDialog {...common} />}
      {(dialog === "move" || dialog === "copy") && <MoveDialog {...common} isCopy={dialog === "copy"} />}
      {dialog === "flag" && <FlagDialog entry={entry} onClose={onClose} />}
    </>
  )
}

/** Moves it to the trash, and offers to take it back. The page of a directory that is gone gives way to the one above. */
const useRemoval = ({ entry, isOpen = false, onChanged, onNotice }: EntryActionsProps) => {
  const { go } = useNavigation()
  const change = useChange()
  const { name, path } = entry.of
  const itemId = entry.kind === "file" ? entry.of.versionGroupId : entry.of.id
  const above = parentOf(path)
  const remove = async (): Promise<void> => {
    if (!(await change.run((ask) => ask(apiPathOf(entry), { method: "DELETE" })))) return
    onNotice({
      text: `${name} is in the trash.`,
      undo: (ask) => restore(ask, { kind: entry.kind, itemId }),
      undone: `${name} is back.`,
      ...(isOpen && { at: above })
    })
    if (isOpen) go(directoryView(above), true)
    onChanged()
  }
  return { change, remove }
}
