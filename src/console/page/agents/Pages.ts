import type { AgentSessionDetail, TranscriptEntry } from "#schemas/agents/AgentSession.ts"

/** A transcript, as far as it was read. */
export interface Pages {
  /** of full pages, which no longer change */
  readonly settled: ReadonlyArray<TranscriptEntry>
  /** of the last page, which is read again */
  readonly last: ReadonlyArray<TranscriptEntry>
  /** the `after` of the last page; undefined: it is the first */
  readonly after: number | undefined
}

export const noPages: Pages = { settled: [], last: [], after: undefined }

/** The entries known once this page has come, and whether another page is there already. */
export const withPage = (
  { after, settled }: Pages,
  { data, next }: (typeof AgentSessionDetail.Type)["transcript"]
): { readonly pages: Pages; readonly isMore: boolean } =>
  next === null
    ? { pages: { settled, last: data, after }, isMore: false }
    : { pages: { settled: [...settled, ...data], last: [], after: next }, isMore: true }
