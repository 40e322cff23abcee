import { Asking } from "../../parts/Asking.tsx"
import { More, usePages } from "../Pages.tsx"
import type { Directory, Listing as Listed } from "../Types.ts"
import { directoryEntry, fileEntry } from "./Entry.ts"
import { EntryTable } from "./EntryTable.tsx"
import type { Noticed } from "./Notice.tsx"

interface ListingProps {
  /** undefined: the root */
  readonly directory: Directory | undefined
  /** counts up with changes */
  readonly since: number
  onChanged(): void
  onNotice(noticed: Noticed): void
}

const refreshMillis = 15_000
const pageSize = 200

/** The content of a directory, a page after the other. */
export const Listing = ({ directory, onChanged, onNotice, since }: ListingProps) => {
  const { pages, refused, ...rest } = usePages<Listed>(
    `/api/directories/${directory?.id ?? "root"}?limit=${pageSize}`,
    refreshMillis,
    { since }
  )
  if (pages === undefined) return <Asking what="the files" isRefused={refused !== undefined} />
  const entries = [
    ...pages.flatMap(({ directories }) => directories.map(directoryEntry)),
    ...pages.flatMap(({ files }) => files.map(fileEntry))
  ]
  if (entries.length === 0) return <Empty isRoot={directory === undefined} />
  return (
    <>
      <EntryTable entries={entries} onChanged={onChanged} onNotice={onNotice} />
      <More {...rest} of="files" />
    </>
  )
}

const Empty = ({ isRoot }: { readonly isRoot: boolean }) => (
  <div class="files-empty">
    <p>
      <strong>{isRoot ? "No files yet" : "This directory is empty"}</strong>
    </p>
    <p class="hint">
      {isRoot
        ? "Drop files or whole folders here, or choose them with the buttons above. They go to the directory uploads, folders to one of their own name."
        : "Drop files or whole folders here, or choose them with the buttons above."}
    </p>
  </div>
)
