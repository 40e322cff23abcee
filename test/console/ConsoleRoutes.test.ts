import { assert, describe, it } from "@effect/vitest"
import { Layer, Logger } from "effect"
import { HttpRouter } from "effect/http"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { beforeAll, onTestFinished } from "vitest"
import * as ConsoleRoutes from "#src/console/ConsoleRoutes.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"

type Get = (path: string, headers?: Record<string, string>) => Promise<Response>

const serve = (layer: typeof ConsoleRoutes.layer): Get => {
  const { dispose, handler } = HttpRouter.toWebHandler(layer, { disableLogger: true })
  onTestFinished(() => dispose())
  return (path, headers = {}) => handler(new Request(`http://localhost${path}`, { headers }))
}

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer())

/** The page and everything that it names. */
const namesIn = (html: string): ReadonlyArray<string> =>
  Array.from(html.matchAll(/(?:src|href)="(\/[^"]*)"/g), ([, path]) => path ?? "")

beforeAll(ensureConsoleBuilt)

describe("the page at /", () => {
  it("is under 100 KB in all, gzipped", async () => {
    const get = serve(ConsoleRoutes.layer)
    const gzip = { "accept-encoding": "gzip" }
    const page = await bytesOf(await get("/", gzip))
    const paths = namesIn(gunzipSync(page).toString())
    assert.isAtLeast(paths.length, 2)
    let total = page.length
    for (const path of paths) {
      const response = await get(path, gzip)
      assert.strictEqual(response.status, 200, path)
      total += (await bytesOf(response)).length
    }
    assert.isBelow(total, 100_000)
  })

  it("names nothing outside of this server", async () => {
    const get = serve(ConsoleRoutes.layer)
    const html = await (await get("/")).text()
    assert.notMatch(html, /(src|href)="(https?:)?\/\//)
    for (const path of namesIn(html).filter((path) => path.endsWith(".css"))) {
      assert.notMatch(await (await get(path)).text(), /url\(|@import/)
    }
  })

  it("is sent in the smallest encoding that the browser takes", async () => {
    const get = serve(ConsoleRoutes.layer)
    const plain = await get("/")
    const text = await plain.text()
    assert.isNull(plain.headers.get("content-encoding"))
    for (const [accepted, encoding, decode] of [
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
      ["br;q=0, gzip", "gzip", gunzipSync]
    ] as const) {
      const response = await get("/", { "accept-encoding": accepted })
      assert.strictEqual(response.headers.get("content-encoding"), encoding)
      assert.strictEqual(response.headers.get("vary"), "Accept-Encoding")
      assert.strictEqual(decode(await bytesOf(response)).toString(), text)
    }
  })

  it("is asked for again at every visit, its parts once; what is unchanged is 304", async () => {
    const get = serve(ConsoleRoutes.layer)
    const page = await get("/")
    assert.strictEqual(page.headers.get("cache-control"), "no-cache")
    const paths = namesIn(await page.text())
    for (const path of paths) {
      const { headers } = await get(path)
      assert.strictEqual(headers.get("cache-control"), "public, max-age=31536000, immutable")
    }
    const etag = page.headers.get("etag") ?? ""
    const again = await get("/", { "if-none-match": etag })
    assert.deepStrictEqual([again.status, again.headers.get("etag"), await again.text()], [304, etag, ""])
    const compressed = await get("/", { "if-none-match": etag, "accept-encoding": "gzip" })
    assert.strictEqual(compressed.status, 200)
  })

  it("may ask this server alone, run its own script alone, and is in nobody's frame", async () => {
    const { headers } = await serve(ConsoleRoutes.layer)("/")
    assert.strictEqual(
      headers.get("content-security-policy"),
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "media-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
    assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
  })

  it("is behind a login link too, for no search engine, and without a word to where its links lead", async () => {
    const get = serve(ConsoleRoutes.layer)
    const page = await get("/login")
    const { headers } = page
    assert.strictEqual(await page.text(), await (await get("/")).text())
    assert.strictEqual(headers.get("x-robots-tag"), "noindex")
    assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
    assert.strictEqual(headers.get("cache-control"), "no-cache")
  })

  it("has no other files than its own", async () => {
    const get = serve(ConsoleRoutes.layer)
    for (const name of ["nothing.js", "stamp", "index.html.gz", "..%2Fstamp", "%2e%2e%2fstamp"]) {
      assert.strictEqual((await get(`/console/${name}`)).status, 404, name)
    }
  })

  it("says what to run where it was not built, at the start and in its place", async () => {
    const directory = mkdtempSync(join(tmpdir(), "signalbox-console-"))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const logged: Array<string> = []
    const logger = Logger.layer([Logger.make(({ message }) => logged.push(String(message)))])
    const response = await serve(ConsoleRoutes.layerFrom(directory).pipe(Layer.provide(logger)))("/")
    assert.strictEqual(response.status, 503)
    assert.include(await response.text(), "node deploy/setup.mjs install")
    assert.strictEqual(logged.length, 1)
    assert.include(logged[0], "node deploy/setup.mjs install")
  })
})
