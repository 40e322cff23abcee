import { join, resolve } from "node:path"
import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"

type Blobs = BlobStore["Service"]

/** The bytes of attachments: with those of all rooms, or in a directory of their own (`ATTACHMENTS_DIR`). */
export class AttachmentBlobs extends Context.Service<
  AttachmentBlobs,
  {
    /** new ones go there; undefined: nowhere */
    readonly target: Blobs | undefined
    /** a directory of their own, if they have one */
    readonly own: Blobs | undefined
    /** by the id of a directory; those that came before another setting stay where they are */
    readonly of: (store: string) => Blobs | undefined
  }
>()("signalbox/notify/AttachmentBlobs") {
  static readonly layer = Layer.effect(
    AttachmentBlobs,
    Effect.gen(function* () {
      const { attachmentsDirectory: place, blobsDirectory, dataDir } = yield* AppConfig
      const shared = yield* BlobStore
      const isShared = place === undefined || place === resolve(blobsDirectory ?? join(dataDir, "blobs"))
      const own = place === null || isShared ? undefined : yield* BlobStore.in(place)
      return AttachmentBlobs.of({
        target: place === null ? undefined : (own ?? shared),
        own,
        of: (store) => [own, shared].find((blobs) => blobs?.id === store)
      })
    })
  )
}
