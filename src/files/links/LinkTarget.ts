import { Effect, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { NotFound, Problem } from "#schemas/core/Problem.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import type { FileSent } from "#src/front/RawRoute.ts"
import type { Archives } from "../archive/Archives.ts"
import type { FileReads } from "../transfers/FileReads.ts"
import { sendBytes } from "../transfers/SendBytes.ts"
import type { Tree } from "../tree/Tree.ts"
import type { StoredFile } from "../tree/Versions.ts"
import type { FoundLink, OpenUse } from "./LinkUses.ts"
import { linkNotFound } from "./ShareLinks.ts"

/** The file or the archive that a link leads to now. */
export interface LinkTarget {
  /** null: an archive */
  readonly versionId: string | null
  /** the name by which it is downloaded */
  readonly name: string
  readonly isDirectory: boolean
  readonly sizeBytes: number
  /** strong, with its quotes */
  readonly etag: string
  readonly modifiedAt: Date | undefined
  /** Answers a GET or HEAD with it. `sent` is called where bytes go out. */
  readonly send: (
    exchange: KeyedExchange,
    disposition: "inline" | "attachment",
    sent?: FileSent
  ) => Effect.Effect<void, Problem>
}

interface Services {
  readonly archives: Archives["Service"]
  readonly reads: FileReads["Service"]
  readonly tree: Tree["Service"]
}

/** It is in no index, and may be shown on pages of others: who has the link has it. */
const ownHeaders = { "cross-origin-resource-policy": "cross-origin", "x-robots-tag": "noindex, nofollow" }

/** A use goes on with the version that it began with, as long as that is there. */
const fileOf = (
  reads: FileReads["Service"],
  link: FoundLink,
  groupId: string,
  use: OpenUse | undefined
): Effect.Effect<StoredFile, NotFound | SqlError> => {
  const own = reads.find(link.versionId ?? groupId)
  const begun = use?.versionId ?? null
  return begun === null ? own : Effect.catchTag(reads.find(begun), "NotFound", () => own)
}

/** Fails with 404 where nothing is there any more. */
export const targetOf = ({ archives, reads, tree }: Services) =>
  Effect.fnUntraced(function* (
    link: FoundLink,
    use: OpenUse | undefined
  ): Effect.fn.Return<LinkTarget, Problem | SqlError, Scope.Scope> {
    const { directoryId, groupId, userId } = link
    if (groupId !== null) {
      const file = yield* Effect.catchTag(fileOf(reads, link, groupId, use), "NotFound", () => linkNotFound)
      return {
        versionId: file.id,
        name: file.name,
        isDirectory: false,
        sizeBytes: file.sizeBytes,
        etag: `"${file.sha256}"`,
        modifiedAt: file.modifiedAt,
        send: (exchange, disposition, sent) =>
          sendBytes(reads, exchange, file, {
            disposition,
            headers: ownHeaders,
            ...(sent !== undefined && { sent })
          })
      }
    }
    const again = Effect.catchTag(tree.directory(userId, directoryId ?? ""), "NotFound", () => linkNotFound)
    const archive = yield* archives.plan({ directory: yield* again, again })
    return {
      versionId: null,
      name: archive.filename,
      isDirectory: true,
      sizeBytes: archive.sizeBytes,
      etag: archive.etag,
      modifiedAt: undefined,
      send: (exchange, _disposition, sent) =>
        archive.send(exchange, { headers: ownHeaders, ...(sent !== undefined && { sent }) })
    }
  })
