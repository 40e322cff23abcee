import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { GitLayout } from "../boundary/GitLayout.ts"

/**
 * A file `commondir` in a repository says where its hooks and configuration are, so it would undo that these are read only.
 * It is the one such file that cannot be held while a commit is made: merely being there, empty, it breaks git. So whatever
 * a command has made of that name is taken away, and named. Source: gitrepository-layout(5).
 */
export const removePlantedLinks = ({ main, nested }: GitLayout): ReadonlyArray<string> =>
  [main, ...nested]
    .filter((repository) => repository !== undefined)
    .filter(({ gitDir, commonDir }) => gitDir === commonDir)
    .map(({ gitDir }) => join(gitDir, "commondir"))
    .filter((path) => existsSync(path))
    .map((path) => {
      rmSync(path, { recursive: true, force: true })
      return path
    })
