import type { Ask } from "../../api/Ask.ts"
import { Refused } from "../../api/Refused.ts"
import type { Directory } from "../Types.ts"
import type { Choice, Chosen } from "./Chosen.ts"
import { placeOf } from "./PlaceOf.ts"
import type { UploadPlace } from "./Upload.ts"

interface Placed {
  readonly places: ReadonlyArray<readonly [Chosen, UploadPlace]>
  /** the names that were left out, for the person */
  readonly note: string | undefined
}

/** Where each of the files goes that were chosen for a directory; undefined: the root. */
export const placesOf = ({ files, unread }: Choice, directory: Directory | undefined): Placed => ({
  places: files.map((chosen) => [chosen, placeOf(chosen.path, directory)] as const),
  note:
    unread.length === 0
      ? undefined
      : `The browser could not read ${unread.slice(0, 3).join(", ")}${unread.length > 3 ? ` and ${unread.length - 3} more` : ""}.`
})

/** Makes the directories that came without files. One that is there already is as good. */
export const makeEmpty = async (
  ask: Ask,
  { emptyDirectories }: Choice,
  directory: Directory | undefined
): Promise<void> => {
  for (const path of emptyDirectories) {
    const { bucket, path: names } = placeOf(path, directory)
    let parent = directory
    for (const name of [...(bucket === undefined ? [] : [bucket]), ...names.split("/")])
      parent = await makeOrFind(ask, parent, name)
  }
}

const makeOrFind = async (ask: Ask, parent: Directory | undefined, name: string): Promise<Directory> => {
  try {
    return await ask("/api/directories", { method: "POST", json: { name, parentId: parent?.id ?? null } })
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 409) throw error
    // It is there: an upload beside this one may just have made it.
    const path = parent === undefined ? name : `${parent.path}/${name}`
    const { directories } = await ask<{ readonly directories: ReadonlyArray<Directory> }>(
      `/api/directories?path=${encodeURIComponent(path)}`
    )
    const found = directories.at(-1)
    if (found === undefined) throw error
    return found
  }
}
