// Builds `signalbox-agent` for people who have no clone: node buildAgent.mjs [platforms, such as linux-x64]. Without
// names, for every platform, which fetches about 50 MB for each from the npm registry, once.
import { createHash, randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "vite"
import { runToEnd } from "../setup/pinned.mjs"
import { SetupFailed, say } from "../setup/progress.mjs"
import { ensureBun, ownPlatform } from "./bun.mjs"
import { platforms } from "./platforms.mjs"

/**
 * The text of one ECMAScript module for Node 22.19 or later: the client and all its imports except Node's own modules.
 */
const bundleClient = async (root, entry) => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-agent-"))
  try {
    await build({
      root,
      configFile: false,
      publicDir: false,
      logLevel: "warn",
      // Optional parts of `ws` would be looked for beside the program, where they do not exist.
      define: { "process.env.WS_NO_BUFFER_UTIL": "true", "process.env.WS_NO_UTF_8_VALIDATE": "true" },
      ssr: { target: "node", noExternal: true },
      build: {
        ssr: entry,
        outDir: home,
        emptyOutDir: true,
        target: "node22",
        minify: false,
        rolldownOptions: {
          output: { entryFileNames: "signalbox-agent.mjs", format: "esm", codeSplitting: false }
        }
      }
    })
    const text = readFileSync(join(home, "signalbox-agent.mjs"), "utf8")
    return `#!/usr/bin/env node\n${text.replace(/^#!.*\n/, "")}`
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/**
 * A repository is no place for settings of the client's runtime: a .env, bunfig.toml or the like in the working
 * directory would otherwise be read, and could run code.
 */
const sealed = ["dotenv", "bunfig", "tsconfig", "package-json"].map((name) => `--no-compile-autoload-${name}`)

/** One executable file: the runtime of the platform with the client in it. Made by this machine's runtime. */
export const compile = (ownBun, { bundle, out, runtime, target }) => {
  const args = ["build", "--compile", ...sealed, `--target=${target}`, `--compile-executable-path=${runtime}`]
  runToEnd(ownBun, [...args, bundle, "--outfile", out], { cwd: dirname(out) })
}

const download = (home, { arch, label }, filename, bytes) => {
  writeFileSync(join(home, filename), bytes)
  const sha256 = createHash("sha256").update(bytes).digest("hex")
  return { arch, label, filename, sizeBytes: bytes.length, sha256 }
}

/**
 * Builds into `home`, which the server reads (src/agents/AgentDownloads.ts): `downloads.json` names a directory beside
 * it and its contents. It is replaced last and atomically: a running server offers the old builds or the new.
 */
export const buildAgent = async ({ entry, home, node, root, wanted }) => {
  const directory = `build-${randomBytes(6).toString("hex")}`
  const place = join(home, directory)
  mkdirSync(place, { recursive: true })
  const bundle = join(place, "signalbox-agent.mjs")
  const text = await bundleClient(root, entry)
  const anyNode = { arch: "node", label: "Any Linux or macOS with Node 22.19 or later" }
  const downloads = [download(place, anyNode, "signalbox-agent.mjs", Buffer.from(text))]
  const own = ownPlatform()
  if (wanted.length > 0 && own === undefined) {
    throw new SetupFailed(
      `${process.platform} ${process.arch} cannot build for others`,
      "build on Linux or macOS"
    )
  }
  const ownBun = wanted.length > 0 ? await ensureBun(root, node, own) : ""
  for (const platform of wanted) {
    const runtime = await ensureBun(root, node, platform)
    const out = join(place, "unpacked")
    compile(ownBun, { bundle, out, runtime, target: platform.target })
    const filename = `signalbox-agent-${platform.arch}.gz`
    downloads.push(download(place, platform, filename, gzipSync(readFileSync(out))))
    rmSync(out)
    say(`Built ${filename}`)
  }
  const manifest = join(home, "downloads.json")
  writeFileSync(`${manifest}.unfinished`, `${JSON.stringify({ directory, downloads }, null, 2)}\n`)
  renameSync(`${manifest}.unfinished`, manifest)
  for (const name of readdirSync(home)) {
    if (name.startsWith("build-") && name !== directory) rmSync(join(home, name), { recursive: true })
  }
  return downloads
}

const wantedOf = (names) =>
  names.length === 0
    ? platforms
    : names.map((name) => {
        const platform = platforms.find(({ arch }) => arch === name)
        if (platform !== undefined) return platform
        const known = platforms.map(({ arch }) => arch).join(", ")
        throw new SetupFailed(`"${name}" is no platform`, `use ${known}`)
      })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
  const entry = join(root, "src/clients/agent/SingleFile.ts")
  try {
    const wanted = wantedOf(process.argv.slice(2))
    const home = join(root, ".runtime/agent")
    const made = await buildAgent({ root, entry, home, node: process.execPath, wanted })
    say(`The server offers now: ${made.map(({ arch }) => arch).join(", ")}`)
  } catch (error) {
    if (!(error instanceof SetupFailed)) throw error
    say(`Build failed: ${error.message}`)
    say(`What to do: ${error.advice}`)
    process.exitCode = 1
  }
}
