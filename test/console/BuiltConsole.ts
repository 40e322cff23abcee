import { join, normalize } from "node:path"
import { pathToFileURL } from "node:url"

const root = normalize(join(import.meta.dirname, "../.."))

interface Console {
  readonly isConsoleBuilt: (root: string) => boolean
  readonly buildConsole: (root: string, runtime: { readonly node: string }) => Promise<void>
}

interface Lock {
  readonly withLock: (directory: string, body: () => Promise<void>) => Promise<void>
}

const setup = <A>(name: string): Promise<A> => import(pathToFileURL(join(root, "deploy/setup", name)).href)

/** Builds the page as the set-up does, where the test run was not started by it; else it is there. */
export const ensureConsoleBuilt = async (): Promise<void> => {
  const { buildConsole, isConsoleBuilt } = await setup<Console>("console.mjs")
  if (isConsoleBuilt(root)) return
  const { withLock } = await setup<Lock>("lock.mjs")
  await withLock(join(root, ".runtime"), () => buildConsole(root, { node: process.execPath }))
}
