import type { Directory as DirectoryOfApi } from "#schemas/files/Directory.ts"
import type { StoredFile as FileOfApi } from "#schemas/files/StoredFile.ts"

export type Directory = typeof DirectoryOfApi.Encoded

/** A file at its current version: the part of it that the page shows. */
export type StoredFile = Pick<
  typeof FileOfApi.Encoded,
  | "id"
  | "versionGroupId"
  | "directoryId"
  | "name"
  | "path"
  | "version"
  | "fileSize"
  | "mimeType"
  | "modifiedAt"
>

/** A page of what is in a directory. */
export interface Listing {
  /** null: the root */
  readonly directory: Directory | null
  readonly directories: ReadonlyArray<Directory>
  readonly files: ReadonlyArray<StoredFile>
  readonly cursor: string | null
}

export type Entry =
  | { readonly kind: "directory"; readonly of: Directory }
  | { readonly kind: "file"; readonly of: StoredFile }
