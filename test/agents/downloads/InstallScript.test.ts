import { assert, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest"
import { installScript, shellQuoted } from "#src/agents/downloads/InstallScript.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { type Build, type DownloadServer, startDownloadServer } from "./DownloadServer.ts"

const has = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)))

const shell = has("dash") ? "dash" : "sh"
const fetcher = requirement("curl or wget", () =>
  has("curl") || has("wget") ? undefined : "neither is on the PATH"
)

/** Says what it is, as the client does. */
const client = (name: string): Buffer => Buffer.from(`#!/bin/sh\necho "signalbox-agent ${name}"\n`)
const packed = (arch: string): Build => ({
  arch,
  filename: `signalbox-agent-${arch}.gz`,
  content: gzipSync(client(arch))
})
const machine = `linux-${process.arch}`

describeWith(fetcher, "the script that installs the agent client", () => {
  let server: DownloadServer
  let home: string

  /** Runs what the server answers as `curl … | sh` does; `programs` stand before the machine's own. */
  const install = async (
    env: Readonly<Record<string, string>> = {},
    programs: Readonly<Record<string, string>> = {}
  ) => {
    const script = await (await fetch(`${server.url}/agent/install.sh`)).text()
    return runScript(script, env, programs)
  }
  const runScript = (
    script: string,
    env: Readonly<Record<string, string>> = {},
    programs: Readonly<Record<string, string>> = {}
  ) => {
    const own = join(home, "programs")
    mkdirSync(own, { recursive: true })
    for (const [name, text] of Object.entries(programs))
      writeFileSync(join(own, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    const PATH = `${own}${delimiter}${process.env["PATH"] ?? ""}`
    return new Promise<{ readonly code: number | null; readonly said: string }>((resolve) => {
      const child = spawn(shell, [], { env: { PATH, HOME: home, ...env }, cwd: home })
      let said = ""
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += String(chunk)))
      child.on("close", (code) => resolve({ code, said }))
      // A script that ends early does not read what is left.
      child.stdin.on("error", (error) => (said += error.message))
      child.stdin.end(script)
    })
  }
  const bin = () => join(home, ".local/bin")
  const installed = () => join(bin(), "signalbox-agent")
  const versionOf = (file: string): string => spawnSync(file, ["--version"], { encoding: "utf8" }).stdout
  const isThere = (): ReadonlyArray<string> => (existsSync(bin()) ? readdirSync(bin()) : [])

  beforeAll(async () => {
    server = await startDownloadServer()
  })
  afterAll(() => server.close())
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "signalbox home's "))
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  it("puts the build for this machine into ~/.local/bin, says so, and leaves nothing else", async () => {
    await server.offer([packed(machine), packed(`${machine}-musl`), packed("darwin-arm64")])
    const { code, said } = await install({}, { ldd: "echo glibc", uname: unameOf("Linux", process.arch) })
    assert.strictEqual(code, 0, said)
    assert.deepStrictEqual(isThere(), ["signalbox-agent"])
    assert.strictEqual(statSync(installed()).mode & 0o777, 0o755)
    assert.strictEqual(versionOf(installed()), `signalbox-agent ${machine}\n`)
    assert.include(said, `Installed signalbox-agent ${machine} as ${installed()}`)
    assert.include(said, `Add it to your PATH:  export PATH="${bin()}:$PATH"`)
    assert.include(said, server.url)

    await server.offer([{ ...packed(machine), content: gzipSync(client("next")) }])
    const again = await install({ PATH: `${bin()}${delimiter}${process.env["PATH"]}` })
    assert.strictEqual(again.code, 0, again.said)
    assert.strictEqual(versionOf(installed()), "signalbox-agent next\n")
    assert.notInclude(again.said, "Add it to your PATH")
  })

  it.each([
    ["Linux", "x86_64", "echo musl libc", "linux-x64-musl"],
    ["Linux", "aarch64", "echo ldd (GNU libc)", "linux-arm64"],
    ["Darwin", "arm64", "exit 1", "darwin-arm64"],
    ["Darwin", "x86_64", "exit 1", "darwin-x64"]
  ])("takes the build for %s on %s", async (system, processor, ldd, arch) => {
    await server.offer(["linux-x64-musl", "linux-arm64", "darwin-arm64", "darwin-x64"].map(packed))
    const { code, said } = await install({}, { uname: unameOf(system, processor), ldd, sysctl: "echo 0" })
    assert.strictEqual(code, 0, said)
    assert.strictEqual(versionOf(installed()), `signalbox-agent ${arch}\n`)
  })

  it("takes the build for Apple silicon where the shell is translated", async () => {
    await server.offer(["darwin-arm64", "darwin-x64"].map(packed))
    await install({}, { uname: unameOf("Darwin", "x86_64"), sysctl: "echo 1" })
    assert.strictEqual(versionOf(installed()), "signalbox-agent darwin-arm64\n")
  })

  it("takes the one for Node where there is none for the machine, and a Node that is new enough", async () => {
    await server.offer([{ arch: "node", filename: "signalbox-agent.mjs", content: client("node") }])
    const old = await install({}, { uname: unameOf("Linux", "riscv64"), node: "exit 1" })
    assert.strictEqual(old.code, 1)
    assert.include(old.said, "no build for Linux riscv64")
    assert.deepStrictEqual(isThere(), [])
    const { code, said } = await install({}, { uname: unameOf("Linux", "riscv64"), node: "exit 0" })
    assert.strictEqual(code, 0, said)
    assert.strictEqual(versionOf(installed()), "signalbox-agent node\n")
  })

  it("installs nothing that is not what the server has, or does not run, and keeps what was there", async () => {
    await server.offer([packed(machine)])
    await install()
    for (const [build, words] of [
      [{ ...packed(machine), sha256: "0".repeat(64) }, "what came is not what the server has"],
      [{ ...packed(machine), content: gzipSync("#!/bin/sh\nexit 3\n") }, "does not run on this machine"],
      [{ ...packed(machine), content: Buffer.from("no gzip") }, ""]
    ] as const) {
      await server.offer([build])
      const { code, said } = await install()
      assert.notStrictEqual(code, 0)
      assert.include(said, words)
      assert.deepStrictEqual(isThere(), ["signalbox-agent"])
      assert.strictEqual(versionOf(installed()), `signalbox-agent ${machine}\n`)
    }
    const script = installScript("http://127.0.0.1:1", server.downloads.list())
    const away = await runScript(script.replace("--retry 3", ""))
    assert.strictEqual(away.code, 1)
    assert.include(away.said, "it could not be fetched")
    assert.deepStrictEqual(isThere(), ["signalbox-agent"])
  })

  it("does not run for root on behalf of somebody else", async () => {
    await server.offer([packed(machine)])
    const { code, said } = await install({ SUDO_USER: "ada" }, { id: "echo 0" })
    assert.strictEqual(code, 1)
    assert.include(said, "without sudo")
    assert.deepStrictEqual(isThere(), [])
  })

  it("goes where it is told to", async () => {
    await server.offer([packed(machine)])
    const { code, said } = await install({ SIGNALBOX_AGENT_DIR: join(home, "my own; bin") })
    assert.strictEqual(code, 0, said)
    assert.deepStrictEqual(readdirSync(join(home, "my own; bin")), ["signalbox-agent"])
    assert.deepStrictEqual(isThere(), [])
  })

  it("does nothing where it was cut off on the way", async () => {
    await server.offer([packed(machine)])
    const script = installScript(server.url, server.downloads.list())
    const cuts = Array.from({ length: 12 }, (_, index) => Math.floor((script.length * (index + 0.5)) / 12))
    cuts.push(script.length - `"$@"\n`.length - 2)
    await Promise.all(cuts.map((cut) => runScript(script.slice(0, cut))))
    assert.deepStrictEqual(isThere(), [])
  })
})

const unameOf = (system: string, processor: string): string => {
  const name = { x64: "x86_64", arm64: "aarch64" }[processor] ?? processor
  return `case "$1" in -s) echo ${system} ;; *) echo ${name} ;; esac`
}

describe("an address in the script", () => {
  it.each([
    "http://127.0.0.1:8080",
    "https://a.example/it's/$(touch x)/`id`/\\",
    'https://a.example/"${HOME}"/!!/;&|',
    "https://a.example/\n rm -rf x"
  ])("is one word of the shell, whatever it is: %j", (url) => {
    const script = installScript(url, [])
    const syntax = spawnSync(shell, ["-n"], { input: script, encoding: "utf8" })
    assert.strictEqual(syntax.status, 0, syntax.stderr)
    const word = spawnSync(shell, ["-c", `printf %s ${shellQuoted(url)}`], { encoding: "utf8" })
    assert.strictEqual(word.stdout, url)
    // Every line that begins with the address or a part of it is inside the quotes or a comment.
    const [, comment = ""] = script.split("\n")
    assert.isTrue(comment.startsWith("# "))
    assert.include(script, `server=${shellQuoted(url)}\n`)
  })
})
