import { useState } from "preact/hooks"
import type { Refused } from "../api/Refused.ts"
import { type ReadOptions, useTurns } from "../api/UseAnswer.ts"
import type { Directory, Listing } from "./Types.ts"

interface Page {
  /** null: it is the last one */
  readonly cursor: string | null
}

/** A long list as far as it is shown. */
export interface Paged<P extends Page> {
  /** undefined until the first has come, also of another list than before */
  readonly pages: ReadonlyArray<P> | undefined
  readonly hasMore: boolean
  /** the next page is on its way */
  readonly isBusy: boolean
  readonly refused: Refused | undefined
  /** shows another page */
  readonly more: () => void
}

/** A list, of which a page more is shown whenever the person asks; all of them are read again every `refreshMillis`. `path` has a query. */
export const usePages = <P extends Page>(
  path: string,
  refreshMillis?: number,
  options?: ReadOptions
): Paged<P> => {
  const [wanted, setWanted] = useState({ path, pages: 1 })
  const [read, setRead] = useState<{ readonly path: string; readonly pages: ReadonlyArray<P> }>()
  const count = wanted.path === path ? wanted.pages : 1
  const refused = useTurns(
    `${path} to page ${count}`,
    () => async (ask, signal) => {
      const pages: Array<P> = []
      let cursor: string | null = null
      do {
        const from: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`
        const page: P = await ask<P>(`${path}${from}`, { signal })
        pages.push(page)
        cursor = page.cursor
      } while (cursor !== null && pages.length < count)
      setRead({ path, pages })
      return refreshMillis
    },
    options
  )
  const pages = read?.path === path ? read.pages : undefined
  const hasMore = typeof pages?.at(-1)?.cursor === "string"
  return {
    pages,
    hasMore,
    isBusy: hasMore && (pages?.length ?? 0) < count,
    refused,
    more: () => setWanted({ path, pages: count + 1 })
  }
}

/** The directories in one, in their order: they come before its files. */
export const useDirectories = (
  id: string,
  pageSize: number,
  refreshMillis?: number,
  options?: ReadOptions
): Paged<Listing> & { readonly directories: ReadonlyArray<Directory> | undefined } => {
  const paged = usePages<Listing>(`/api/directories/${id}?limit=${pageSize}`, refreshMillis, options)
  return {
    ...paged,
    directories: paged.pages?.flatMap(({ directories }) => directories),
    hasMore: paged.hasMore && paged.pages?.at(-1)?.files.length === 0
  }
}

/** The button for the next page, where there is one. */
export const More = ({
  hasMore,
  isBusy,
  more,
  of
}: Pick<Paged<Page>, "hasMore" | "isBusy" | "more"> & {
  /** `files`, for those who hear the button alone */
  readonly of: string
}) =>
  hasMore ? (
    <p class="files-more">
      <button
        type="button"
        aria-label={`Show more ${of}`}
        aria-disabled={isBusy}
        onClick={() => !isBusy && more()}
      >
        {isBusy ? "Asking …" : "Show more"}
      </button>
    </p>
  ) : null
