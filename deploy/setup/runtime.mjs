import { spawnSync } from "node:child_process"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import process from "node:process"
import { npm } from "./npm.mjs"
import { SetupFailed } from "./progress.mjs"

/** What the server needs: type stripping without a flag, and what Effect 4 asks for. */
const needed = [22, 19]

/** What an older machine gets, from the npm registry like every other dependency. */
const pinned = "22.23.3"

const isEnough = (version) => {
  const [major, minor] = version.split(".").map(Number)
  return major > needed[0] || (major === needed[0] && minor >= needed[1])
}

const packaged = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"]

const platform = `${process.platform}-${process.arch}`

/** Where the pinned Node is; `complete` is there once it was seen to run: a fetch can be killed half-way. */
const places = (root) => {
  const home = join(root, ".runtime")
  const node = join(home, "node_modules", `node-${platform}`, "bin", "node")
  return { home, node, complete: join(home, `node-${platform}-${pinned}`) }
}

const runs = (node) => spawnSync(node, ["--version"], { encoding: "utf8" }).stdout?.trim() === `v${pinned}`

/** The Node to run with, if it needs no fetching: this one where it is new enough, else the one in `.runtime/`. */
export const findRuntime = (root) => {
  if (isEnough(process.versions.node)) return { node: process.execPath, version: process.versions.node }
  const { complete, node } = places(root)
  return existsSync(complete) ? { node, version: pinned } : undefined
}

/** The Node to run with, fetched where this one is too old. */
export const ensureRuntime = async (root) => {
  const found = findRuntime(root)
  if (found !== undefined) return found
  if (!packaged.includes(platform)) {
    throw new SetupFailed(
      `Node ${process.versions.node} is too old and there is no packaged one for ${platform}`,
      `install Node ${needed.join(".")} or later and run the command again`
    )
  }
  const { complete, home, node } = places(root)
  if (!runs(node)) {
    rmSync(dirname(dirname(node)), { recursive: true, force: true })
    await npm(
      process.execPath,
      [
        "install",
        "--prefix",
        home,
        "--no-save",
        "--no-package-lock",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund"
      ].concat(`node-${platform}@${pinned}`),
      { cwd: root, label: `Fetching Node ${pinned} (this one is ${process.versions.node})` }
    )
  }
  if (!runs(node)) {
    throw new SetupFailed(
      `the Node in ${node} does not run on this machine`,
      `install Node ${needed.join(".")} or later and run the command again`
    )
  }
  writeFileSync(complete, "")
  return { node, version: pinned }
}
