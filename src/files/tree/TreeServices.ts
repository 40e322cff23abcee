import { Layer } from "effect"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import * as DirectoriesRoutes from "./DirectoriesRoutes.ts"
import { DirectoryChanges } from "./DirectoryChanges.ts"
import { FileChanges } from "./FileChanges.ts"
import { Listing } from "./Listing.ts"
import { Purge } from "./Purge.ts"
import { Restoring } from "./Restoring.ts"
import { StorageRoom } from "./StorageRoom.ts"
import * as StoredFilesRoutes from "./StoredFilesRoutes.ts"
import { Trash } from "./Trash.ts"
import * as TrashRoutes from "./TrashRoutes.ts"
import { Tree } from "./Tree.ts"
import { Versions } from "./Versions.ts"
import { Walk } from "./Walk.ts"
import { Effect } from "effect"

/** Directories, files, versions and the trash. */
export const treeServices = Restoring.layer.pipe(
  Layer.provideMerge(Layer.merge(FileChanges.layer, DirectoryChanges.layer)),
  Layer.provideMerge(Trash.layer),
  Layer.provideMerge(
    Layer.mergeAll(Tree.layer, Versions.layer, Walk.layer, Listing.layer, Purge.layer, StorageRoom.layer)
  )
)

export const treeEndpoints = Layer.mergeAll(
  DirectoriesRoutes.layer,
  StoredFilesRoutes.layer,
  TrashRoutes.layer
)

/** Entries of the trash and versions that are too old go. */
export const treeSweep = Layer.unwrap(
  Effect.gen(function* () {
    const trash = yield* Trash
    const purge = yield* Purge
    const run = Effect.andThen(trash.sweep, purge.prune)
    return Sweeps.layer({ name: "files", every: "fileSweepEveryMillis", run })
  })
)
