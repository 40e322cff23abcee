import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { ShareLink } from "#schemas/files/ShareLink.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { until } from "#test/harness/Eventually.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"

const clients = 1_000

/** On a busy machine the database may be late. */
const patient = async (url: string, asked: RequestInit): Promise<Response> => {
  const answer = await fetch(url, asked)
  if (answer.status !== 503) return answer
  await answer.arrayBuffer()
  return patient(url, asked)
}
const cap = 10

describe("a link through two processes on one Postgres and one directory of blobs", () => {
  let stores: ServerStores
  let servers: ReadonlyArray<ServerProcess> = []
  let blobs: string
  let admin: { readonly url: string; readonly adminKey: string }

  beforeAll(async () => {
    stores = await openStores()
    blobs = await mkdtemp(join(tmpdir(), "blobs-"))
    const env = { ...stores.env, BLOBS_URL: pathToFileURL(blobs).href, ROOMS: "accounts,files" }
    const first = await startServer({ env })
    servers = [first, await startServer({ env })]
    admin = { url: first.url, adminKey: first.adminKey() }
  }, 120_000)
  afterAll(async () => {
    for (const server of servers) await server.dispose()
    await stores?.close()
    await rm(blobs, { recursive: true, force: true })
  })

  const askAdmin = (method: string, path: string, json?: object) =>
    fetch(`${admin.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${admin.adminKey}`, "content-type": "application/json" },
      ...(json !== undefined && { body: JSON.stringify(json) })
    })

  const uploaded = async (bytes: Uint8Array<ArrayBuffer>): Promise<UploadedFile> => {
    const form = new FormData()
    form.append("files", new Blob([bytes]), "shared.bin")
    const answer = await fetch(`${admin.url}/api/upload`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin.adminKey}` },
      body: form
    })
    const { files } = (await answer.json()) as { readonly files: ReadonlyArray<UploadedFile> }
    return files[0] ?? assert.fail("nothing was uploaded")
  }

  const linkTo = async (fileId: string, fields: object = {}): Promise<ShareLink> =>
    (await (await askAdmin("POST", "/api/share-links", { fileId, ...fields })).json()) as ShareLink

  const urlOf = (at: number, token: string): string => `${servers[at % 2]?.url}/direct/${token}`

  it(
    `gives its bytes to exactly ${cap} of ${clients} programs that ask at once`,
    { timeout: 120_000 },
    async () => {
      const bytes = Buffer.alloc(20_000, "shared ")
      const { fileId } = await uploaded(bytes)
      const { token } = await linkTo(fileId, { maxRequests: cap })
      const outcomes = await Promise.all(
        Array.from({ length: clients }, async (_, at) => {
          const answer = await patient(urlOf(at, token), { headers: { accept: "*/*" } })
          const body = Buffer.from(await answer.arrayBuffer())
          if (answer.status === 200) assert.isTrue(body.equals(bytes))
          else assert.strictEqual(body.toString(), '{"error":"Link exhausted"}')
          return answer.status
        })
      )
      assert.strictEqual(outcomes.filter((status) => status === 200).length, cap)
      assert.strictEqual(outcomes.filter((status) => status === 410).length, clients - cap)
    }
  )

  it(
    `lets exactly ${cap} of ${clients / 4} people through who click at once`,
    { timeout: 120_000 },
    async () => {
      const { fileId } = await uploaded(Buffer.from("the bytes"))
      const { token } = await linkTo(fileId, { maxRequests: cap })
      const headers = { accept: "text/html,*/*;q=0.8" }
      const texts = await Promise.all(
        Array.from({ length: clients / 4 }, async (_, at) => {
          const seen = await patient(urlOf(at, token), { headers })
          await seen.arrayBuffer()
          // The other process has the bytes.
          const clicked = await patient(urlOf(at, token), { method: "POST", headers, redirect: "manual" })
          await clicked.arrayBuffer()
          if (clicked.status !== 303) return String(clicked.status)
          const query = clicked.headers.get("location")?.split("?")[1] ?? ""
          return (await patient(`${urlOf(at + 1, token)}?${query}`, { headers })).text()
        })
      )
      assert.strictEqual(texts.filter((text) => text === "the bytes").length, cap)
      assert.strictEqual(texts.filter((text) => text === "410").length, clients / 4 - cap)
    }
  )

  it(
    "ends within a second of its revocation, in the midst of a download too",
    { timeout: 60_000 },
    async () => {
      const { fileId } = await uploaded(Buffer.alloc(64 * 2 ** 20, "x"))
      const { token } = await linkTo(fileId)
      const port = Number(new URL(servers[1]?.url ?? "").port)
      const socket = connect(port, "127.0.0.1")
      let isClosed = false
      socket.on("error", () => undefined).on("close", () => (isClosed = true))
      socket.write(`GET /direct/${token} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n`)
      // A client that takes a piece now and then has a download under way for a long time.
      const resuming = setInterval(() => socket.resume(), 50)
      socket.on("data", () => socket.pause())
      await new Promise<void>((resolve) => socket.once("data", () => resolve()))
      const revoked = await askAdmin("DELETE", `/api/share-links/${token}`)
      assert.strictEqual(revoked.status, 200)
      for (const at of [0, 1]) assert.strictEqual((await fetch(urlOf(at, token))).status, 404)
      await until("the download ends", async () => (isClosed ? undefined : "it goes on"))
      clearInterval(resuming)
      assert.isBelow(socket.bytesRead, 64 * 2 ** 20)
    }
  )
})
