import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { builtinModules } from "node:module"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe } from "vitest"
import { describeWith, requirement } from "#test/harness/Requirement.ts"

const root = normalize(join(import.meta.dirname, "../../.."))
const load = <A>(name: string): Promise<A> => import(pathToFileURL(join(root, "deploy/agent", name)).href)

interface Platform {
  readonly arch: string
  readonly target: string
  readonly integrity: string
}
interface Download {
  readonly arch: string
  readonly filename: string
  readonly sizeBytes: number
  readonly sha256: string
}
interface Builder {
  readonly buildAgent: (what: {
    readonly entry: string
    readonly home: string
    readonly node: string
    readonly root: string
    readonly wanted: ReadonlyArray<Platform>
  }) => Promise<ReadonlyArray<Download>>
  readonly compile: (
    ownBun: string,
    what: {
      readonly bundle: string
      readonly out: string
      readonly runtime: string
      readonly target: string
    }
  ) => void
}

const { findBun, ownPlatform } = await load<{
  readonly findBun: (root: string, platform: Platform) => string | undefined
  readonly ownPlatform: () => Platform | undefined
}>("bun.mjs")

const platform = ownPlatform()
const bun = platform === undefined ? undefined : findBun(root, platform)
const bunPresent = requirement("the runtime of the single-file build", () =>
  bun === undefined ? "not fetched; `npm run build:agent` does it" : undefined
)

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly version: string
}

let home: string
let builder: Builder

/** Elsewhere, with an environment that names nothing of this project. */
const run = (program: string, args: ReadonlyArray<string>, cwd: string) =>
  spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    env: { HOME: join(home, "nobody"), PATH: process.env["PATH"] }
  })

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "signalbox-build-"))
  builder = await load<Builder>("buildAgent.mjs")
  const entry = join(root, "src/clients/agent/SingleFile.ts")
  const node = process.execPath
  mkdirSync(join(home, "build-of-before"))
  await builder.buildAgent({ entry, home, node, root, wanted: [] })
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

const manifest = () =>
  JSON.parse(readFileSync(join(home, "downloads.json"), "utf8")) as {
    readonly directory: string
    readonly downloads: ReadonlyArray<Download>
  }
const bundle = () => join(home, manifest().directory, "signalbox-agent.mjs")

describe("the build of the agent client", () => {
  it("says what is there, with its size and SHA-256, and keeps nothing of the build before", () => {
    const { directory, downloads } = manifest()
    assert.sameMembers(readdirSync(home), [directory, "downloads.json"])
    assert.deepStrictEqual(
      downloads.map(({ filename }) => filename),
      readdirSync(join(home, directory))
    )
    for (const { filename, sha256, sizeBytes } of downloads) {
      const bytes = readFileSync(join(home, directory, filename))
      assert.strictEqual(bytes.length, sizeBytes)
      assert.strictEqual(createHash("sha256").update(bytes).digest("hex"), sha256)
    }
  })

  it("needs nothing beside it but Node", () => {
    const text = readFileSync(bundle(), "utf8")
    const imported = Array.from(
      text.matchAll(/^import .*?from "([^"]+)";$|\brequire\("([^"]+)"\)/gm),
      (match) => (match[1] ?? match[2] ?? "").replace(/^node:/, "")
    )
    assert.isAbove(imported.length, 5)
    assert.deepStrictEqual(
      imported.filter((name) => !builtinModules.includes(name)),
      []
    )
    const empty = join(home, "nobody")
    mkdirSync(empty, { recursive: true })
    const file = join(empty, "signalbox-agent")
    writeFileSync(file, text)
    chmodSync(file, 0o755)
    const { stderr, stdout } = run(process.execPath, [file, "--version"], empty)
    assert.strictEqual(stdout.trim(), `signalbox-agent ${version}`, stderr)
  })
})

describeWith(bunPresent, "a single file for this machine", () => {
  it("runs where there is no Node, and takes no orders from the directory it is started in", () => {
    const place = join(home, "workspace")
    mkdirSync(place)
    const probe = join(place, "probe.mjs")
    writeFileSync(
      probe,
      `import { isMainThread, Worker } from "node:worker_threads"
       if (isMainThread) {
         new Worker(new URL(import.meta.url)).on("exit", () => console.log(JSON.stringify([globalThis.ordered, process.env.ORDERED])))
       }`
    )
    writeFileSync(join(place, "bunfig.toml"), 'preload = ["./ordered.js"]\n')
    writeFileSync(join(place, "ordered.js"), "globalThis.ordered = true\n")
    writeFileSync(join(place, ".env"), "ORDERED=true\n")
    const out = join(home, "single")
    const target = platform?.target ?? ""
    builder.compile(bun ?? "", { bundle: probe, out, runtime: bun ?? "", target })
    assert.strictEqual(run(out, [], place).stdout, "[null,null]\n")

    builder.compile(bun ?? "", { bundle: bundle(), out, runtime: bun ?? "", target })
    const { stderr, stdout } = run(out, ["--version"], place)
    assert.strictEqual(stdout.trim(), `signalbox-agent ${version}`, stderr)
  })
})
