import type { Directory as ShownDirectory } from "#schemas/files/Directory.ts"
import type { FileVersion, StoredFile as ShownFile } from "#schemas/files/StoredFile.ts"
import type { Directory } from "./Tree.ts"
import type { StoredFile } from "./Versions.ts"

/** Directories and files as answers show them to their owner. Source: contract/files#tree. */

export const shownDirectory = (directory: Directory): ShownDirectory => {
  const { bucketName, createdAt, id, kind, modifiedAt, name, parentId, path, userId } = directory
  return {
    id,
    name,
    parentId,
    path: path === "" ? bucketName : `${bucketName}/${path.slice(0, -1)}`,
    isInbox: kind === "inbox",
    ownerId: userId,
    permission: "owner",
    encryptionEnabled: false,
    versionDays: directory.versionDays,
    requiredReplicas: directory.requiredReplicas,
    createdAt,
    modifiedAt
  }
}

const ofVersion = (file: StoredFile) => ({
  id: file.id,
  version: file.version,
  originalName: file.originalName,
  mimeType: file.mimeType,
  fileSize: file.sizeBytes,
  fileHash: file.sha256,
  isEncrypted: file.isEncrypted,
  encryptionKeyId: file.encryptionKeyId,
  modifiedAt: file.modifiedAt,
  createdAt: file.createdAt,
  url: `/api/files/${file.id}`
})

export const shownPath = ({ bucketName, path }: StoredFile): string => `${bucketName}/${path}`

export const shownFile = (file: StoredFile): ShownFile => ({
  ...ofVersion(file),
  versionGroupId: file.groupId,
  directoryId: file.directoryId,
  name: file.name,
  path: shownPath(file),
  ownerId: file.userId,
  permission: "owner"
})

export const shownVersion = (file: StoredFile): FileVersion => ({
  ...ofVersion(file),
  isCurrent: file.isCurrent
})
