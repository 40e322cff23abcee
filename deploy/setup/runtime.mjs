import { existsSync } from "node:fs"
import { join } from "node:path"
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

/** The Node to run with: this one where it is new enough, else the pinned one in `.runtime/`. */
export const ensureRuntime = async (root) => {
  if (isEnough(process.versions.node)) return { node: process.execPath, version: process.versions.node }
  const platform = `${process.platform}-${process.arch}`
  if (!packaged.includes(platform)) {
    throw new SetupFailed(
      `Node ${process.versions.node} is too old and there is no packaged one for ${platform}`,
      `install Node ${needed.join(".")} or later and run the command again`
    )
  }
  const home = join(root, ".runtime")
  const node = join(home, "node_modules", `node-${platform}`, "bin", "node")
  if (!existsSync(node)) {
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
  return { node, version: pinned }
}
