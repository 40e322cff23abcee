/** A directory, as the API answers it. */
export interface Directory {
  readonly id: string
  readonly name: string
  /** from the bucket on, with `/` between the names */
  readonly path: string
  readonly parentId: string | null
  readonly isInbox: boolean
  readonly versionDays: number | null
  readonly createdAt: string
  readonly modifiedAt: string
}

/** A file, as the API answers it. */
export interface StoredFile {
  /** of its current version */
  readonly id: string
  readonly versionGroupId: string
  readonly name: string
  readonly path: string
  readonly directoryId: string
  readonly version: number
  readonly fileSize: number
  readonly mimeType: string
  readonly fileHash: string
  readonly modifiedAt: string
  readonly createdAt: string
}

export interface Listing {
  /** null: of the root */
  readonly directory: Directory | null
  readonly directories: ReadonlyArray<Directory>
  readonly files: ReadonlyArray<StoredFile>
  readonly cursor: string | null
}

export type Entry =
  | { readonly kind: "directory"; readonly of: Directory }
  | { readonly kind: "file"; readonly of: StoredFile }
