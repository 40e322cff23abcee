import { assert, describe, it } from "@effect/vitest"
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { signalbox } from "./Signalbox.ts"

const original = normalize(join(import.meta.dirname, "../../src/cli/signalbox.mjs"))

/** Makes the process that it is loaded into believe that it is an old Node. */
const oldNode =
  "data:text/javascript," +
  encodeURIComponent(
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.0" } })'
  )

/** The launcher in a tree of its own, whose main.ts tells what it was called with. */
const inTree = async (use: (launcher: string, root: string) => Promise<void>): Promise<void> => {
  const root = await mkdtemp(join(tmpdir(), "signalbox-launcher-"))
  try {
    await mkdir(join(root, "src/cli"), { recursive: true })
    await cp(original, join(root, "src/cli/signalbox.mjs"))
    await writeFile(
      join(root, "src/cli/main.ts"),
      "console.log(JSON.stringify([process.argv.slice(2), process.versions.node])); process.exitCode = 69"
    )
    await use(join(root, "src/cli/signalbox.mjs"), root)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

describe("the launcher", () => {
  it("hands arguments and exit code through", () =>
    inTree(async (launcher) => {
      const { code, out } = await signalbox(["status", "--json", "a b"], {}, launcher)
      assert.deepStrictEqual([code, JSON.parse(out)[0]], [69, ["status", "--json", "a b"]])
    }))

  it("uses the Node of .runtime where this one is too old", () =>
    inTree(async (launcher, root) => {
      const packaged = join(root, `.runtime/node_modules/node-${process.platform}-${process.arch}/bin`)
      await mkdir(packaged, { recursive: true })
      await symlink(process.execPath, join(packaged, "node"))
      const { code, err, out } = await signalbox(["status"], {}, launcher, ["--import", oldNode])
      assert.strictEqual(code, 69, err)
      assert.deepStrictEqual(JSON.parse(out), [["status"], process.versions.node])
    }))

  it("says what it needs where there is no such Node", () =>
    inTree(async (launcher) => {
      const { code, err, out } = await signalbox(["status"], {}, launcher, ["--import", oldNode])
      assert.deepStrictEqual([code, out], [69, ""])
      assert.match(err, /needs Node 22\.19 or later \(this is 18\.20\.0\)/)
    }))
})
