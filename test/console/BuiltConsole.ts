import { join, normalize } from "node:path"
import { pathToFileURL } from "node:url"

const root = normalize(join(import.meta.dirname, "../.."))

interface Setup {
  readonly buildConsole: (root: string, runtime: { readonly node: string }) => Promise<void>
}

/** Builds the page as the set-up does, where the test run was not started by it; else it is there. */
export const ensureConsoleBuilt = async (): Promise<void> => {
  const setup: Setup = await import(pathToFileURL(join(root, "deploy/setup/console.mjs")).href)
  await setup.buildConsole(root, { node: process.execPath })
}
