import { existsSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fetchPinned } from "../setup/pinned.mjs"
import { SetupFailed, say } from "../setup/progress.mjs"
import { bunVersion, platforms } from "./platforms.mjs"

const placeOf = (root, { package: name }) => {
  const home = join(root, ".runtime/bun", `${name.split("/")[1]}-${bunVersion}`)
  return { home, bun: join(home, "package/bin/bun") }
}

/** The runtime for a platform, if it was fetched. */
export const findBun = (root, platform) => {
  const { bun } = placeOf(root, platform)
  return existsSync(bun) ? bun : undefined
}

/** The runtime for a platform: from the npm registry, by name, and only with the pinned content. */
export const ensureBun = async (root, node, platform) => {
  const found = findBun(root, platform)
  if (found !== undefined) return found
  const { bun, home } = placeOf(root, platform)
  const { integrity, label, package: name } = platform
  await fetchPinned(node, {
    name,
    version: bunVersion,
    integrity,
    into: join(home, "package"),
    label: `Fetching the runtime for ${label}`
  })
  return bun
}

const isMusl = () => process.report?.getReport().header.glibcVersionRuntime === undefined

/** The platform of this machine, if there is a build for it. */
export const ownPlatform = () => {
  const arch = `${process.platform}-${process.arch}${process.platform === "linux" && isMusl() ? "-musl" : ""}`
  return platforms.find((platform) => platform.arch === arch)
}

/** For the tests of single files. If it cannot be fetched they are reported as skipped, with the reason. */
export const ensureOwnBun = async (root, node) => {
  const own = ownPlatform()
  if (own === undefined) return
  try {
    await ensureBun(root, node, own)
  } catch (error) {
    if (!(error instanceof SetupFailed)) throw error
    say(`${error.message}; the tests that need it are skipped`)
  }
}
