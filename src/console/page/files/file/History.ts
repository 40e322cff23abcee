import type { StoredFile } from "../Types.ts"

/** A version of a file, as the API answers it. */
export interface FileVersion {
  readonly id: string
  readonly version: number
  readonly originalName: string
  readonly mimeType: string
  readonly fileSize: number
  readonly isEncrypted: boolean
  readonly isCurrent: boolean
  readonly fileHash: string
  readonly url: string
  readonly createdAt: string
  readonly modifiedAt: string
}

/** A file with its versions, newest first. */
export interface History {
  readonly fileId: string
  readonly versionGroupId: string
  readonly name: string
  readonly path: string
  readonly directoryId: string
  readonly versions: ReadonlyArray<FileVersion>
}

/** The file as it is now. */
export const fileOf = ({
  directoryId,
  name,
  path,
  versionGroupId,
  versions
}: History): (StoredFile & { readonly isEncrypted: boolean }) | undefined => {
  const current = versions.find(({ isCurrent }) => isCurrent)
  return current && { ...current, versionGroupId, name, path, directoryId }
}
