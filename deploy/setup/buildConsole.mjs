// Builds the page at `/`: node buildConsole.mjs <sources> <where to> <stamp>. A program of its own, because the set-up
// may run on a Node that is too old for the bundler.
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { build } from "vite"

const [sources, home, stamp] = process.argv.slice(2)
// One set-up works at a time (lock.mjs), so the remains of an earlier one are overwritten.
const unfinished = `${home}.unfinished`

await build({
  root: sources,
  mode: "production",
  base: "/console/",
  configFile: false,
  publicDir: false,
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: unfinished,
    emptyOutDir: true,
    assetsDir: "",
    target: "es2022",
    modulePreload: false,
    reportCompressedSize: false
  }
})

// Compressed once, at the highest level, instead of at every request.
for (const name of readdirSync(unfinished)) {
  const file = join(unfinished, name)
  const bytes = readFileSync(file)
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
  writeFileSync(
    `${file}.br`,
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } })
  )
}
writeFileSync(join(unfinished, "stamp"), stamp)
rmSync(home, { recursive: true, force: true })
mkdirSync(join(home, ".."), { recursive: true })
renameSync(unfinished, home)
