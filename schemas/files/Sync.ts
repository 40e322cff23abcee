import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, UserId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { DeviceHeader } from "./DeviceHeader.ts"
import { fullAccess, readAccess } from "./FilesAccess.ts"

/** Flags of synchronisation, and manifests. Source: contract/files#synchronisation. */

const ResourceType = Schema.Literals(["file", "directory"])

const resource = {
  resourceType: ResourceType,
  resourceId: line(1, 64).annotate({ description: "Of a file its `versionGroupId`, of a directory its `id`" })
}

const SyncScope = Schema.Literals(["all", "selected"]).annotate({
  description: "All devices of the user, or those of `deviceIds`"
})

const deviceIdsMax = 100

const SyncFlag = Schema.Struct({
  ...resource,
  enabled: Schema.Literal(true),
  scope: SyncScope,
  deviceIds: Schema.Array(Schema.String)
}).annotate({ identifier: "SyncSubscription", description: "A flag of a file or directory" })

const SyncFlags = Schema.Struct({
  subscriptions: Schema.Array(SyncFlag),
  excluded: Schema.Array(Schema.Struct(resource)).annotate({
    description: "Below a flagged directory, and left out with what is below them"
  })
}).annotate({ identifier: "SyncSubscriptions", description: "The flags of what is not in the trash" })
export type SyncFlags = typeof SyncFlags.Type

const SyncFlagChange = Schema.Struct({
  ...resource,
  enabled: Schema.optionalKey(
    Schema.Boolean.annotate({
      default: true,
      description: "`false` takes the flag away; below a flagged directory it leaves the item out"
    })
  ),
  scope: Schema.optionalKey(SyncScope.annotate({ default: "all" })),
  deviceIds: Schema.optionalKey(
    Schema.Array(Schema.String)
      .check(Schema.isMaxLength(deviceIdsMax, { expected: `at most ${deviceIdsMax} ids of devices` }))
      .annotate({ description: "Of one's own devices; read where `scope` is `selected`" })
  )
}).annotate({ identifier: "SyncSubscriptionChange" })
export type SyncFlagChange = typeof SyncFlagChange.Type

const Permission = Schema.Literals(["owner", "write", "read"])

const ManifestDirectory = Schema.Struct({
  id: idSchema("dir", "directory"),
  name: Schema.String,
  parentId: Schema.NullOr(idSchema("dir", "directory")).annotate({
    description: "One that is not in the list is the device's folder of what it synchronises; null: a bucket"
  }),
  ownerId: UserId,
  permission: Permission,
  encryptionEnabled: Schema.Boolean
}).annotate({ identifier: "SyncDirectory" })
export type ManifestDirectory = typeof ManifestDirectory.Type

const ManifestFile = Schema.Struct({
  versionGroupId: idSchema("fg", "file"),
  currentFileId: idSchema("fv", "version"),
  version: Schema.Int,
  fileHash: Schema.String.annotate({ description: "SHA-256 of the stored bytes, in hexadecimal" }),
  fileSize: Schema.Int,
  mimeType: Schema.String,
  originalName: Schema.String.annotate({ description: "The file's name, now" }),
  directoryId: Schema.NullOr(idSchema("dir", "directory")).annotate({
    description: "null: it was sent to this device, and lies in the device's folder itself"
  }),
  isEncrypted: Schema.Boolean,
  encryptionKeyId: Schema.NullOr(Schema.String),
  ownerId: UserId,
  permission: Permission,
  modifiedAt: Timestamp
}).annotate({ identifier: "SyncFile" })
export type ManifestFile = typeof ManifestFile.Type

const Manifest = Schema.Struct({
  directories: Schema.Array(ManifestDirectory),
  files: Schema.Array(ManifestFile),
  generatedAt: Timestamp,
  cursor: Schema.String.annotate({
    description: "The state that this manifest shows, for reading changes from it on"
  })
}).annotate({ identifier: "SyncManifest", description: "All that a device is to have" })

/** Flags of synchronisation, and the manifest. Source: contract/files#synchronisation. */
export class SyncApi extends HttpApiGroup.make("sync")
  .add(
    HttpApiEndpoint.get("listSyncFlags", "/subscriptions", { success: SyncFlags })
      .annotateMerge(fullAccess)
      .annotate(OpenApi.Summary, "List what is synchronised"),
    HttpApiEndpoint.post("setSyncFlag", "/subscriptions", {
      payload: SyncFlagChange,
      success: Schema.Struct({ success: Schema.Literal(true), enabled: Schema.Boolean }).annotate({
        identifier: "SyncSubscriptionSet"
      }),
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotateMerge(fullAccess)
      .annotate(OpenApi.Summary, "Flag a file or directory, or take its flag away")
      .annotate(
        OpenApi.Description,
        "The nearest flag decides: the file's own, else that of the nearest directory above. What is in the Inbox is never synchronised (400). A user has at most 10,000 flags (409)."
      ),
    HttpApiEndpoint.get("readManifest", "/manifest", {
      success: Manifest,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotateMerge(readAccess)
      .annotate(OpenApi.Summary, "Read what a device is to have")
      .annotate(
        OpenApi.Description,
        "Of the device that `X-Device-Id` names (404 where it is unknown); without it, what is flagged for all devices. `ETag` stands for the lists: `If-None-Match` gets 304 while they stay as they are. At most 200,000 directories and files (409)."
      )
  )
  .middleware(DeviceHeader)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Synchronisation", description: "What devices keep a copy of." })
  )
  .prefix("/api/sync") {}
