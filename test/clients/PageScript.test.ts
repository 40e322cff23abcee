import { assert, describe, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { minifySync, transformWithOxc } from "vite"
import { root } from "#test/harness/ServerProcess.ts"

const directory = join(root, "src/clients/beacon")
const source = readFileSync(join(directory, "a.js"), "utf8")
const minified = join(directory, "a.min.js")

const minify = (code: string): string => {
  const made = minifySync("a.js", code, {
    module: false,
    compress: { target: "es2018" },
    mangle: true,
    codegen: { removeWhitespace: true, legalComments: "none" }
  })
  assert.deepStrictEqual(made.errors, [])
  return `${made.code}\n`
}

describe("a.min.js", () => {
  it("is a.js, minified (UPDATE_GOLDEN=1 writes it anew)", () => {
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(minified, minify(source))
    assert.strictEqual(readFileSync(minified, "utf8"), minify(source))
  })

  it("is at most 1,000 bytes gzipped", () => {
    assert.isAtMost(gzipSync(readFileSync(minified)).length, 1000)
  })

  it("has no syntax that is younger than ES2018", async () => {
    const lowered = await transformWithOxc(source, "a.js", { target: "es2018", sourcemap: false })
    assert.strictEqual(minify(lowered.code), minify(source))
    const younger = await transformWithOxc("window.a?.b", "a.js", { target: "es2018", sourcemap: false })
    assert.notInclude(younger.code, "?.", "the transformation lowers nothing")
  })

  it("touches no cookie and no storage", () => {
    assert.notMatch(source, /\.cookie|localStorage|sessionStorage|indexedDB|caches\b|cookieStore/)
  })
})
