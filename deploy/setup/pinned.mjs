import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { npm } from "./npm.mjs"
import { SetupFailed } from "./progress.mjs"

/** Runs the program; a failure carries its output. */
export const runToEnd = (program, args, options = {}) => {
  const { error, status, stderr, stdout } = spawnSync(program, args, { encoding: "utf8", ...options })
  if (status === 0) return stdout
  throw new SetupFailed(
    `${program} ${args[0]} ended with ${status ?? error?.message}\n${stderr ?? ""}`,
    "read the message above; a disk that is full is the likely cause"
  )
}

/**
 * Puts a package of the npm registry into a directory of its own, and only with the pinned content: `integrity` is the
 * SHA-512 of its archive, noted when the version was chosen. Whole or not at all.
 */
export const fetchPinned = async (node, { integrity, into, label, name, version }) => {
  const unfinished = `${into}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  await npm(node, ["pack", `${name}@${version}`, "--pack-destination", unfinished], {
    cwd: unfinished,
    label
  })
  const file = `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`
  const hash = createHash("sha512")
    .update(readFileSync(join(unfinished, file)))
    .digest("base64")
  if (`sha512-${hash}` !== integrity) {
    rmSync(unfinished, { recursive: true })
    throw new SetupFailed(
      `${name}@${version} is not what it was when it was chosen`,
      "ask who runs your npm registry; nothing of it was used"
    )
  }
  runToEnd("tar", ["-xzf", file], { cwd: unfinished })
  rmSync(into, { recursive: true, force: true })
  mkdirSync(dirname(into), { recursive: true })
  renameSync(join(unfinished, "package"), into)
  rmSync(unfinished, { recursive: true })
}
