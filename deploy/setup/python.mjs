import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { withLock } from "./lock.mjs"
import { say, showProgress } from "./progress.mjs"

/** Every package with its version, dependencies included: nothing has to be resolved. */
const requirements = fileURLToPath(new URL("python-requirements.txt", import.meta.url))

/** A second version of one of them, beside the environment's, since LiteLLM asks for the older one. */
const beside = { directory: "openai-3", packages: ["openai==3.54.0"] }

const homeOf = (root) => join(root, ".runtime/python")

const fingerprint = () =>
  createHash("sha256").update(readFileSync(requirements)).update(beside.packages.join()).digest("hex")

const isInstalled = (home) => {
  const stamp = join(home, "installed")
  return existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint()
}

/** Answers the program's output if it failed, else undefined. */
const run = (label, program, args) =>
  new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    const collect = (chunk) => {
      output = (output + chunk).slice(-4_000)
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    const end = showProgress(label, () => child.pid)
    child.on("error", (error) => resolve(error.message))
    child.on("close", (code) => {
      end(code === 0 ? "done" : "failed")
      resolve(code === 0 ? undefined : output.trim())
    })
  })

const install = async (home) => {
  rmSync(home, { recursive: true, force: true })
  const label = "Installing Python clients for the tests"
  const made = await run("Making a Python environment", "python3", ["-m", "venv", home])
  if (made !== undefined) return made
  const python = join(home, "bin/python")
  const pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--retries", "1"]
  return (
    (await run(label, python, [...pip, "--requirement", requirements])) ??
    (await run(label, python, [...pip, "--target", join(home, beside.directory), ...beside.packages]))
  )
}

/**
 * Installs the Python clients of the tests in `.runtime/python`; returns at once if they are there. If they cannot be
 * installed the tests concerned are skipped, with the reason; `REQUIRE_ALL=1` makes that a failure.
 */
export const ensurePythonClients = async (root) => {
  const home = homeOf(root)
  if (isInstalled(home)) return
  if (spawnSync("python3", ["--version"]).status !== 0) {
    say("Not on this machine: python3; the tests of Python clients are skipped")
    return
  }
  await withLock(join(root, ".runtime"), async () => {
    if (isInstalled(home)) return
    const problem = await install(home)
    if (problem === undefined) return writeFileSync(join(home, "installed"), fingerprint())
    process.stderr.write(`${problem}\n`)
    say("The Python clients could not be installed; the tests that need them are skipped")
  })
}
