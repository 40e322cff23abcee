const id = "2sJH7aQmXy4TzWcVbN8kLp"

const owned = { ownerId: `usr_${id}`, permission: "owner" }
const times = { createdAt: "2026-11-20T17:05:12.411Z", modifiedAt: "2026-11-20T17:05:12.411Z" }

const directory = {
  id: `dir_${id}`,
  name: "reports",
  parentId: "dir_7Yk2sJH7aQmXy4TzWcVbN8",
  path: "docs/reports",
  isInbox: false,
  ...owned,
  encryptionEnabled: false,
  versionDays: 90,
  requiredReplicas: null,
  ...times
}

const version = {
  id: `fv_${id}`,
  version: 3,
  originalName: "may.pdf",
  mimeType: "application/pdf",
  fileSize: 48_213,
  fileHash: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
  isEncrypted: false,
  encryptionKeyId: null,
  ...times,
  url: `/api/files/fv_${id}`
}

const place = { directoryId: directory.id, name: "may.pdf", path: "docs/reports/may.pdf" }

const file = { ...version, versionGroupId: `fg_${id}`, ...place, ...owned }

/** Examples of answers about directories, files and the trash, by the name of their schema. */
export const treeExamples: Readonly<Record<string, unknown>> = {
  Directory: directory,
  DirectoryList: { directories: [directory] },
  DirectoryPage: {
    directory,
    directories: [],
    files: [file],
    cursor: "ZgBtYXkucGRm"
  },
  StoredFile: file,
  FileList: { files: [file], cursor: null },
  VersionHistory: {
    fileId: version.id,
    versionGroupId: file.versionGroupId,
    ...place,
    versions: [{ ...version, isCurrent: true }]
  },
  Trashed: { deleted: true, trashId: `tsh_${id}` },
  TrashList: {
    items: [
      {
        id: `tsh_${id}`,
        kind: "file",
        itemId: file.versionGroupId,
        name: file.name,
        path: file.path,
        size: 130_411,
        trashedAt: "2026-11-21T08:30:00.000Z",
        expiresAt: "2026-12-21T08:30:00.000Z"
      }
    ],
    cursor: null
  },
  StorageUsage: { usedBytes: 8_412_311, trashBytes: 130_411, quotaBytes: null }
}
