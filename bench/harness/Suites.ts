import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { BenchSuite } from "./Suite.ts"

const root = join(import.meta.dirname, "..")

const fileOf = (name: string): string => join(root, name, "Suite.ts")

/** Every folder of bench/ that has a suite. */
export const suiteNames = (): ReadonlyArray<string> =>
  readdirSync(root)
    .filter((name) => name !== "harness" && existsSync(fileOf(name)))
    .sort()

export const loadSuite = async (name: string): Promise<BenchSuite> => {
  const file = fileOf(name)
  if (!existsSync(file)) throw new Error(`there is no suite "${name}"; there are: ${suiteNames().join(", ")}`)
  const module: { readonly suite: BenchSuite } = await import(pathToFileURL(file).href)
  if (module.suite.name !== name) throw new Error(`bench/${name} calls itself "${module.suite.name}"`)
  return module.suite
}
