import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, readdirSync } from "node:fs"
import { join, relative } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { SetupFailed, say } from "./progress.mjs"

const builder = fileURLToPath(new URL("buildConsole.mjs", import.meta.url))

const sourcesOf = (root) => join(root, "src/console/page")

/** Directory of the built page, read by the server. */
export const consoleHome = (root) => join(root, ".runtime/console")

const filesOf = (directory) =>
  readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(directory, entry.name)
      return entry.isDirectory() ? filesOf(path) : [path]
    })
    .sort()

/** Inputs of the built page: its sources, its build tools and their settings. */
const fingerprint = (root) => {
  const hash = createHash("sha256").update(readFileSync(join(root, "package-lock.json")))
  hash.update(readFileSync(builder))
  for (const file of filesOf(sourcesOf(root)))
    hash.update(`\n${relative(root, file)}\n`).update(readFileSync(file))
  return hash.digest("hex")
}

/** Whether the page was built from the present sources. */
export const isConsoleBuilt = (root) => {
  const stamp = join(consoleHome(root), "stamp")
  return existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint(root)
}

/** Builds the page at `/` with the Node given, unless it is there: without downloads, in about a second. */
export const buildConsole = async (root, { node }) => {
  if (isConsoleBuilt(root)) return
  const started = Date.now()
  const args = [builder, sourcesOf(root), consoleHome(root), fingerprint(root)]
  const output = await new Promise((resolve) => {
    // Another NODE_ENV of the shell would make a development page.
    const env = { ...process.env, NODE_ENV: "production" }
    const child = spawn(node, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
    let text = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk))
    child.on("error", (error) => resolve(error.message))
    child.on("close", (code) => resolve(code === 0 ? undefined : text))
  })
  if (output !== undefined) {
    process.stderr.write(`${output}\n`)
    throw new SetupFailed(
      "the page at / could not be built",
      "read the message above; a disk that is full or a changed file in src/console/page is the likely cause"
    )
  }
  say(`Building the page at /: done in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}
