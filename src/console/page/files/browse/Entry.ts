import type { Directory, Entry, StoredFile } from "../Types.ts"

/** The address of a directory or file in the API. */
export const apiPathOf = ({ kind, of }: Entry): string =>
  kind === "file" ? `/api/files/${of.id}` : `/api/directories/${of.id}`

/** The address of its bytes, for the browser's own download: by the session's cookie. */
export const downloadOf = ({ kind, of }: Entry): string =>
  kind === "file" ? `/api/files/${of.id}?download=1` : `/api/download/${of.id}`

export const isBucket = ({ path }: Directory): boolean => !path.includes("/")

/** The Inbox stays where it is, under its name. */
export const isFixed = ({ kind, of }: Entry): boolean => kind === "directory" && of.isInbox

export const directoryEntry = (of: Directory): Entry => ({ kind: "directory", of })

export const fileEntry = (of: StoredFile): Entry => ({ kind: "file", of })
