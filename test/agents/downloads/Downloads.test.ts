import { assert, describe, it } from "@effect/vitest"
import { truncate } from "node:fs/promises"
import { afterAll, beforeAll } from "vitest"
import { installCommands } from "#src/agents/downloads/InstallScript.ts"
import { type DownloadServer, sha256Of, startDownloadServer } from "./DownloadServer.ts"

const bytesOf = async (answer: Response): Promise<Buffer> => Buffer.from(await answer.arrayBuffer())

describe("downloads of the agent client", () => {
  let server: DownloadServer
  const content = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251))
  const filename = "signalbox-agent-linux-x64.gz"
  const get = (path: string, init?: RequestInit): Promise<Response> => fetch(`${server.url}${path}`, init)
  const path = `/api/v1/agent/downloads/${filename}`

  beforeAll(async () => {
    server = await startDownloadServer()
  })
  afterAll(() => server.close())

  it("are none, with a note that says what to do, where nothing was built", async () => {
    assert.deepStrictEqual(server.downloads.list(), [])
    assert.include(server.downloads.note() ?? "", "npm run build:agent")
    const answer = await get(path)
    assert.strictEqual(answer.status, 404)
    assert.deepStrictEqual(await answer.json(), { error: "Not found" })
  })

  it("count as soon as they are built, with size and SHA-256", async () => {
    await server.offer([{ arch: "linux-x64", filename, content }])
    const sha256 = sha256Of(content)
    assert.deepStrictEqual(server.downloads.list(), [
      { arch: "linux-x64", label: "linux-x64", filename, url: path, sizeBytes: 200_000, sha256 }
    ])
    assert.isNull(server.downloads.note())
    const answer = await get(path)
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(sha256Of(await bytesOf(answer)), sha256)
    assert.strictEqual(answer.headers.get("content-length"), "200000")
    assert.strictEqual(answer.headers.get("content-type"), "application/gzip")
    assert.include(answer.headers.get("cache-control") ?? "", "no-transform")
    assert.include(answer.headers.get("content-disposition") ?? "", `attachment; filename="${filename}"`)
  })

  it("are told of by HEAD, sent on from where they broke off, and not sent twice", async () => {
    const head = await get(path, { method: "HEAD" })
    assert.strictEqual(head.headers.get("content-length"), "200000")
    assert.strictEqual((await bytesOf(head)).length, 0)
    const etag = head.headers.get("etag") ?? ""
    assert.strictEqual(etag, `"${sha256Of(content)}"`)

    const rest = await get(path, { headers: { range: "bytes=150000-", "if-range": etag } })
    assert.strictEqual(rest.status, 206)
    assert.strictEqual(rest.headers.get("content-range"), "bytes 150000-199999/200000")
    assert.deepStrictEqual(await bytesOf(rest), content.subarray(150_000))
    const other = await get(path, { headers: { range: "bytes=150000-", "if-range": '"another"' } })
    assert.strictEqual(other.status, 200)
    await bytesOf(other)
    assert.strictEqual((await get(path, { headers: { range: "bytes=200000-" } })).status, 416)
    assert.strictEqual((await get(path, { headers: { "if-none-match": etag } })).status, 304)
  })

  it("are nothing but what was built: no other file is reached by any name", async () => {
    for (const name of [
      "downloads.json",
      "..%2fdownloads.json",
      "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
      "%00",
      "."
    ])
      assert.strictEqual((await get(`/api/v1/agent/downloads/${name}`)).status, 404, name)
  })

  it("are offered only in their full length, and never from a manifest that is not in order", async () => {
    await server.offer([
      { arch: "linux-x64", filename, content },
      { arch: "node", filename: "signalbox-agent.mjs", content: Buffer.from("// text") }
    ])
    const [first] = server.downloads.list()
    await truncate(server.downloads.find(first?.filename ?? "")?.file ?? "", 100)
    assert.deepStrictEqual(
      server.downloads.list().map(({ arch }) => arch),
      ["node"]
    )
    assert.strictEqual((await get(path)).status, 404)
    await server.offer([{ arch: "linux-x64", filename: "signalbox-agent", content, sha256: "no hash" }])
    assert.deepStrictEqual(server.downloads.list(), [])
    await server.offer([{ arch: "$(id)", filename: "signalbox-agent", content }])
    assert.deepStrictEqual(server.downloads.list(), [])
  })

  it("come with commands that are true: none for a binary that is not there", async () => {
    assert.strictEqual(installCommands(server.url, server.downloads.list()).binary, "")
    await server.offer([{ arch: "linux-x64", filename, content }])
    assert.strictEqual(
      installCommands("http://it's.example", server.downloads.list()).binary,
      `curl -fsSL 'http://it'\\''s.example/agent/install.sh' | sh`
    )
  })
})
