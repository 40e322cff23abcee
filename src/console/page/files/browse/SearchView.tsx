import { useState } from "preact/hooks"
import { Asking } from "../../parts/Asking.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { More, usePages } from "../Pages.tsx"
import type { StoredFile } from "../Types.ts"
import { fileEntry } from "./Entry.ts"
import { EntryTable } from "./EntryTable.tsx"
import { Notice, type Noticed } from "./Notice.tsx"
import { useCount } from "../../parts/UseCount.ts"

const refreshMillis = 30_000

/** The files whose names have the words. */
export const SearchView = ({ words }: { readonly words: string }) => {
  const [since, onChanged] = useCount()
  const [noticed, setNoticed] = useState<Noticed>()
  const { pages, refused, ...rest } = usePages<{
    readonly files: ReadonlyArray<StoredFile>
    readonly cursor: string | null
  }>(`/api/files?q=${encodeURIComponent(words)}&limit=200`, refreshMillis, { since })
  const files = pages?.flatMap((page) => page.files)
  return (
    <section class="files-main" aria-busy={files === undefined}>
      <Heading tab="Search">{`Files named “${words}”`}</Heading>
      <Notice noticed={noticed} onUndone={onChanged} />
      {files === undefined && <Asking what="files of that name" isRefused={refused !== undefined} />}
      {files?.length === 0 && (
        <p class="hint">No file has that in its name. Search for a part of the name, in any case.</p>
      )}
      {files !== undefined && files.length > 0 && (
        <EntryTable entries={files.map(fileEntry)} hasPlaces onChanged={onChanged} onNotice={setNoticed} />
      )}
      <More {...rest} of="files" />
    </section>
  )
}
