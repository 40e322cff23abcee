import { assert, describe, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"

const project = normalize(join(import.meta.dirname, "../.."))

/** An npm whose `pack` always gives the archive that lies beside it. */
const fakeNpm = `
const { copyFileSync } = require("node:fs")
const { join } = require("node:path")
const [command, wanted, flag, directory] = process.argv.slice(2)
if (command !== "pack" || flag !== "--pack-destination") process.exit(3)
copyFileSync(join(__dirname, "archive.tgz"), join(directory, wanted.replace("@", "-") + ".tgz"))
`

const within = async (use: (root: string) => Promise<void>): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), "signalbox-runtime-"))
  try {
    mkdirSync(join(root, "package/bin"), { recursive: true })
    writeFileSync(join(root, "package/bin/node"), "#!/bin/sh\necho v22.23.3\n", { mode: 0o755 })
    spawnSync("tar", ["-czf", "archive.tgz", "package"], { cwd: root })
    writeFileSync(join(root, "npm-cli.js"), fakeNpm)
    await use(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Runs a piece of the set-up by itself. */
const run = (
  root: string,
  script: string
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      cwd: root,
      env: { ...process.env, npm_execpath: join(root, "npm-cli.js") },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    child.once("close", (code) => resolve({ code, output }))
  })

const setup = (file: string): string => JSON.stringify(join(project, "deploy/setup", file))

describe("the Node that is fetched", () => {
  it("is used with the content alone that is written down: another one is refused, and nothing of it stays", () =>
    within(async (root) => {
      const script = `import { fetchRuntime } from ${setup("runtime.mjs")}; await fetchRuntime(${JSON.stringify(root)})`
      const { code, output } = await run(root, script)
      assert.notStrictEqual(code, 0)
      assert.match(output, /node-\S+@22\.\d+\.\d+ is not what it was when it was chosen/)
      assert.deepStrictEqual(readdirSync(join(root, ".runtime/node_modules")), [])
    }))

  it("is unpacked where its content is right", () =>
    within(async (root) => {
      const archive = readFileSync(join(root, "archive.tgz"))
      const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`
      const asked = {
        name: "some-package",
        version: "1.2.3",
        integrity,
        into: join(root, "there/it"),
        label: "x"
      }
      const script = `import { fetchPinned } from ${setup("pinned.mjs")}
        await fetchPinned(process.execPath, ${JSON.stringify(asked)})`
      const { code, output } = await run(root, script)
      assert.strictEqual(code, 0, output)
      assert.strictEqual(
        spawnSync(join(root, "there/it/bin/node"), { encoding: "utf8" }).stdout,
        "v22.23.3\n"
      )
      assert.isFalse(existsSync(join(root, "there/it.unfinished")))
    }))
})
