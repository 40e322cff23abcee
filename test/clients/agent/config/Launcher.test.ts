import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { inDirectory } from "../TestClient.ts"

const originals = normalize(join(import.meta.dirname, "../../../../src/clients/agent"))

/** Makes the process that it is loaded into believe that it is an old Node. */
const oldNode =
  "data:text/javascript," +
  encodeURIComponent(
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.0" } })'
  )

/** The key as the client finds it in the process that started it; empty where there is no /proc. */
const client = `
  import { existsSync, readFileSync } from "node:fs"
  const path = "/proc/" + process.ppid + "/environ"
  const seen = existsSync(path) && readFileSync(path, "utf8").includes("sk-launcher")
  console.log(JSON.stringify([...process.argv.slice(2), process.env.SIGNALBOX_KEY, seen]))
  process.exitCode = 5
`

/** The launcher in a tree of its own, whose main.ts says what it was called with. */
const launch = (root: string, nodeOptions: ReadonlyArray<string>) => {
  const directory = join(root, "src/clients/agent")
  mkdirSync(directory, { recursive: true })
  for (const name of ["signalbox-agent.mjs", "hideEnvironment.mjs"])
    cpSync(join(originals, name), join(directory, name))
  writeFileSync(join(directory, "main.ts"), client)
  const args = [...nodeOptions, join(directory, "signalbox-agent.mjs"), "-p", "a b"]
  const env = { ...process.env, SIGNALBOX_KEY: "sk-launcher" }
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { encoding: "utf8", env, input: "" })
  return { status, stderr, stdout: stdout.trim() }
}

describe("the launcher of the agent client", () => {
  it("runs the client in its own process where that can, else with the Node of .runtime, else says what it needs", () =>
    inDirectory(async (root) => {
      const said = '["-p","a b","sk-launcher",false]'
      assert.deepStrictEqual(launch(root, []), { status: 5, stderr: "", stdout: said })
      const without = launch(root, ["--import", oldNode])
      assert.deepStrictEqual([without.status, without.stdout], [69, ""])
      assert.match(without.stderr, /needs Node 22\.19 or later \(this is 18\.20\.0\)/)
      const bin = join(root, `.runtime/node_modules/node-${process.platform}-${process.arch}/bin`)
      mkdirSync(bin, { recursive: true })
      symlinkSync(process.execPath, join(bin, "node"))
      const packaged = launch(root, ["--import", oldNode])
      assert.deepStrictEqual([packaged.status, packaged.stdout], [5, said])
    }))
})
