import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { npm } from "../setup/npm.mjs"
import { SetupFailed, say } from "../setup/progress.mjs"
import { bunVersion, platforms } from "./platforms.mjs"

const placeOf = (root, { package: name }) => {
  const home = join(root, ".runtime/bun", `${name.split("/")[1]}-${bunVersion}`)
  return { home, bun: join(home, "package/bin/bun") }
}

/** Runs, and fails with what the program said. */
export const runToEnd = (program, args, options = {}) => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { encoding: "utf8", ...options })
  if (status === 0) return stdout
  throw new SetupFailed(
    `${program} ${args[0]} ended with ${status ?? error?.message}\n${stderr ?? ""}`,
    "read the message above; a disk that is full is the likely cause"
  )
}

/** The runtime for a platform, if it was fetched. */
export const findBun = (root, platform) => {
  const { bun } = placeOf(root, platform)
  return existsSync(bun) ? bun : undefined
}

/** The runtime for a platform: from the npm registry, by name, and only with the content that is written down. */
export const ensureBun = async (root, node, platform) => {
  const found = findBun(root, platform)
  if (found !== undefined) return found
  const { bun, home } = placeOf(root, platform)
  const unfinished = `${home}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  const { integrity, label, package: name } = platform
  await npm(node, ["pack", `${name}@${bunVersion}`, "--pack-destination", unfinished], {
    cwd: unfinished,
    label: `Fetching the runtime for ${label}`
  })
  const file = `${name.slice(1).replace("/", "-")}-${bunVersion}.tgz`
  const hash = createHash("sha512")
    .update(readFileSync(join(unfinished, file)))
    .digest("base64")
  if (`sha512-${hash}` !== integrity) {
    rmSync(unfinished, { recursive: true })
    throw new SetupFailed(
      `${name}@${bunVersion} is not what it was when it was chosen`,
      "ask who runs your npm registry; nothing of it was used"
    )
  }
  runToEnd("tar", ["-xzf", file], { cwd: unfinished })
  rmSync(join(unfinished, file))
  rmSync(home, { recursive: true, force: true })
  renameSync(unfinished, home)
  return bun
}

const isMusl = () => process.report?.getReport().header.glibcVersionRuntime === undefined

/** The platform of this machine, if it is among those that are built. */
export const ownPlatform = () => {
  const arch = `${process.platform}-${process.arch}${process.platform === "linux" && isMusl() ? "-musl" : ""}`
  return platforms.find((platform) => platform.arch === arch)
}

/** For the tests of single files. Where it cannot be fetched they are reported as skipped, with the reason. */
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
