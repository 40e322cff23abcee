import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import { commitOf } from "./Machine.ts"
import { needProgram, runProgram } from "./Program.ts"

/** A copy of the code of a commit or a directory, ready to run. */
export interface Tree {
  readonly directory: string
  /** its commit, "+" marking uncommitted changes */
  readonly label: string
  /** it is measured by its own bench, since this one's does not load on its code */
  readonly ownBench: boolean
}

const root = join(import.meta.dirname, "../..")

/** These folders come from here on both sides: a difference in how two commits measure is none in what they do. */
const measuring = ["bench", "test/harness"]

const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: directory, encoding: "utf8", stdio: "pipe", maxBuffer: 64 * 1024 * 1024 })

const copyFiles = (from: string, to: string, files: ReadonlyArray<string>): void => {
  for (const file of files) {
    const source = join(from, file)
    // Listed by git, but deleted in the working tree.
    if (!existsSync(source)) continue
    mkdirSync(dirname(join(to, file)), { recursive: true })
    cpSync(source, join(to, file), { verbatimSymlinks: true })
  }
}

/** The files of a working tree that git tracks or would, changes included. */
const copyDirectory = (from: string, to: string): void => {
  const listed = git(from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
  copyFiles(
    from,
    to,
    listed.split("\0").filter((file) => file !== "")
  )
}

const extractCommit = async (commit: string, to: string, signal: AbortSignal): Promise<void> => {
  const archive = `${to}.tar`
  await needProgram("git", ["archive", "--format=tar", "-o", archive, commit], { cwd: root, signal })
  await needProgram("tar", ["-xf", archive], { cwd: to, signal })
  rmSync(archive)
}

/** The packages of this tree where both trees ask for the same ones; else the other one's own set-up fetches them. */
const provide = async (directory: string, signal: AbortSignal): Promise<void> => {
  const lock = (of: string): string => readFileSync(join(of, "package-lock.json"), "utf8")
  if (lock(directory) === lock(root)) {
    for (const name of ["node_modules", ".runtime"]) symlinkSync(join(root, name), join(directory, name))
    return
  }
  const install = ["deploy/setup.mjs", "install"]
  await needProgram(process.execPath, install, { cwd: directory, signal, shows: "all" })
}

const filesBelow = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))

/** Loads every file of the suites and the harness in a tree; answers the first fault, or undefined. */
const faultOf = async (
  directory: string,
  suites: ReadonlyArray<string>,
  signal: AbortSignal
): Promise<string | undefined> => {
  const files = ["harness", ...suites].flatMap((folder) =>
    filesBelow(join(directory, "bench", folder)).map((file) => join(directory, "bench", folder, file))
  )
  // Files that do something when run look at argv[1]; here they are only loaded.
  const isLoaded = (file: string): boolean => !/Worker\.ts$|Process\.ts$|main\.ts$|Fill\.ts$/.test(file)
  const script = `for (const file of ${JSON.stringify(files.filter(isLoaded))}) await import(file)`
  const load = ["--input-type=module", "-e", script]
  const { end, errors } = await runProgram(process.execPath, load, { cwd: directory, signal })
  if (typeof end === "string") throw new Error(`loading the bench on another tree was ended by ${end}`)
  return end === 0 ? undefined : (/^\w*Error.*$/m.exec(errors)?.[0] ?? errors)
}

const overlay = (directory: string): void => {
  for (const folder of measuring) {
    rmSync(join(directory, folder), { recursive: true, force: true })
    copyDirectory(join(root, folder), join(directory, folder))
  }
}

const hasHarness = (directory: string): boolean =>
  existsSync(join(directory, "bench/harness/SuiteProcess.ts"))

/** This working tree, as it is now: later edits do not reach the run. */
export const copyHere = async (directory: string, signal: AbortSignal): Promise<Tree> => {
  mkdirSync(directory)
  copyDirectory(root, directory)
  await provide(directory, signal)
  return { directory, label: commitOf(root), ownBench: false }
}

/** Another tree: a directory, or a commit of this repository. */
export const copyOther = async (
  name: string,
  directory: string,
  suites: ReadonlyArray<string>,
  signal: AbortSignal
): Promise<Tree> => {
  const isDirectory = existsSync(name) && statSync(name).isDirectory()
  const commit = isDirectory ? "" : git(root, "rev-parse", "--verify", "--short", `${name}^{commit}`).trim()
  const copy = async (): Promise<void> => {
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory)
    if (isDirectory) copyDirectory(resolve(name), directory)
    else await extractCommit(commit, directory, signal)
    await provide(directory, signal)
  }
  const label = isDirectory ? `${name} (${commitOf(resolve(name))})` : commit
  await copy()
  overlay(directory)
  const fault = await faultOf(directory, suites, signal)
  if (fault === undefined) return { directory, label, ownBench: false }
  await copy()
  if (!hasHarness(directory))
    throw new Error(
      `${label} cannot be compared: this bench does not load on its code (${fault}), and its own is too old`
    )
  return { directory, label, ownBench: true }
}
