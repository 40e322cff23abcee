import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Asking } from "../../parts/Asking.tsx"
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
export const Listing = (props: ListingProps) => {
  const { directory, since } = props
  const base = `/api/directories/${directory?.id ?? "root"}?limit=${pageSize}`
  const { data, refused } = useAnswer<Listed>(base, refreshMillis, { since })
  if (data === undefined) return <Asking what="the files" isRefused={refused !== undefined} />
  const isEmpty = data.directories.length === 0 && data.files.length === 0
  if (isEmpty) return <Empty isRoot={directory === undefined} />
  return <Pages {...props} base={base} data={data} />
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

interface PagesProps extends ListingProps {
  readonly base: string
  readonly data: Listed
}

const Pages = ({ base, data, onChanged, onNotice, since }: PagesProps) => {
  const [isMore, setMore] = useState(false)
  const entries = [...data.directories.map(directoryEntry), ...data.files.map(fileEntry)]
  return (
    <>
      <EntryTable entries={entries} onChanged={onChanged} onNotice={onNotice} />
      {data.cursor !== null && !isMore && (
        <p>
          <button type="button" onClick={() => setMore(true)}>
            Show more
          </button>
        </p>
      )}
      {data.cursor !== null && isMore && (
        <NextPage {...{ base, onChanged, onNotice, since }} cursor={data.cursor} />
      )}
    </>
  )
}

interface NextPageProps extends Omit<PagesProps, "data" | "directory"> {
  readonly cursor: string
}

const NextPage = ({ base, cursor, ...rest }: NextPageProps) => {
  const { data, refused } = useAnswer<Listed>(`${base}&cursor=${encodeURIComponent(cursor)}`, refreshMillis, {
    since: rest.since
  })
  if (data === undefined) return <Asking what="more files" isRefused={refused !== undefined} />
  return <Pages {...rest} base={base} data={data} directory={undefined} />
}
