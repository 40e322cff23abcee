import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { ShareLink } from "#schemas/files/ShareLink.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { type Answer, ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { TusClient } from "./uploads/TusClient.ts"

const clients = 1_000

/** On a busy machine the database may be late; `onLate` hears of it. */
const patient = async (url: string, asked: RequestInit, onLate = () => {}): Promise<Response> => {
  const answer = await fetch(url, asked)
  if (answer.status !== 503) return answer
  await answer.arrayBuffer()
  onLate()
  return patient(url, asked, onLate)
}
const cap = 10
/** Bytes that no buffers on the way hold. */
const large = 64 * 2 ** 20

const hexOf = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0")

/** Whether the server's end of a connection on loopback is open, as the system tells. Source: proc_net_tcp(5). */
const isEstablished = (serverPort: number, clientPort: number): boolean =>
  readFileSync("/proc/net/tcp", "latin1").includes(
    `0100007F:${hexOf(serverPort)} 0100007F:${hexOf(clientPort)} 01 `
  )

describe("two processes on one Postgres and one directory of blobs", () => {
  let stores: ServerStores
  let servers: ReadonlyArray<ServerProcess> = []
  let blobs: string

  beforeAll(async () => {
    stores = await openStores()
    blobs = await mkdtemp(join(tmpdir(), "blobs-"))
    const env = { ...stores.env, BLOBS_URL: pathToFileURL(blobs).href, ROOMS: "accounts,files" }
    const first = await startServer({ env })
    servers = [first, await startServer({ env })]
  })
  afterAll(async () => {
    for (const server of servers) await server.dispose()
    await stores?.close()
    await rm(blobs, { recursive: true, force: true })
  })

  /** One of them, which takes the key that the first one made. */
  const at = (index: number): Reachable => ({
    url: servers[index % 2]?.url ?? "",
    adminKey: () => servers[0]?.adminKey() ?? ""
  })

  const asked = async (...request: Parameters<typeof ask>): Promise<Answer> => {
    const answer = await ask(...request)
    assert.include([200, 201], answer.status, JSON.stringify(answer.body))
    return answer
  }

  const newUser = async () => {
    const email = `${randomUUID()}@example.com`
    const user = await asked(at(0), "POST", "/api/v1/admin/users", { json: { email, name: "Ada" } })
    const id = textAt(user, "id")
    return { id, ...(await newKey({ user_id: id })) }
  }

  const newKey = async (fields: object) => {
    const made = await asked(at(0), "POST", "/api/v1/keys", {
      json: { name: "key", kind: "account", ...fields }
    })
    return { keyId: textAt(made, "id"), key: textAt(made, "key") }
  }

  const uploaded = async (
    bytes: Uint8Array<ArrayBuffer>,
    by = at(0).adminKey(),
    index = 0
  ): Promise<UploadedFile> => {
    const form = new FormData()
    form.append("files", new Blob([bytes]), "shared.bin")
    const { body } = await asked(at(index), "POST", "/api/upload", { key: by, form })
    const { files } = body as { readonly files: ReadonlyArray<UploadedFile> }
    return files[0] ?? assert.fail("nothing was uploaded")
  }

  const linkTo = async (fileId: string, fields: object = {}): Promise<ShareLink> =>
    (await asked(at(0), "POST", "/api/share-links", { json: { fileId, ...fields } })).body as ShareLink

  const urlOf = (index: number, token: string): string => `${at(index).url}/direct/${token}`

  it(`give the bytes of a link to exactly ${cap} of ${clients} programs that ask at once`, async () => {
    const bytes = Buffer.alloc(20_000, "shared ")
    const { fileId } = await uploaded(bytes)
    const { token } = await linkTo(fileId, { maxRequests: cap })
    let [given, late] = [0, 0]
    const take = async (index: number): Promise<void> => {
      const asked = { headers: { accept: "*/*" } }
      const answer = await patient(urlOf(index, token), asked, () => late++)
      const body = Buffer.from(await answer.arrayBuffer())
      if (answer.status === 200) {
        assert.isTrue(body.equals(bytes))
        given++
      } else {
        assert.deepStrictEqual([answer.status, body.toString()], [410, '{"error":"Link exhausted"}'])
      }
    }
    await Promise.all(Array.from({ length: clients }, (_, index) => take(index)))
    // A use that was counted too late for its client is given back, behind the clients that come meanwhile.
    if (late > 0)
      await until("all uses are taken", async () => {
        if (given < cap) await take(0)
        return given < cap ? `${given} of them` : undefined
      })
    await take(1)
    assert.strictEqual(given, cap)
  })

  it(`let exactly ${cap} of ${clients / 4} people through a link who click at once`, async () => {
    const { fileId } = await uploaded(Buffer.from("the bytes"))
    const { token } = await linkTo(fileId, { maxRequests: cap })
    const headers = { accept: "text/html,*/*;q=0.8" }
    const texts = await Promise.all(
      Array.from({ length: clients / 4 }, async (_, index) => {
        const seen = await patient(urlOf(index, token), { headers })
        await seen.arrayBuffer()
        // The other process has the bytes.
        const clicked = await patient(urlOf(index, token), { method: "POST", headers, redirect: "manual" })
        await clicked.arrayBuffer()
        if (clicked.status !== 303) return String(clicked.status)
        const query = clicked.headers.get("location")?.split("?")[1] ?? ""
        return (await patient(`${urlOf(index + 1, token)}?${query}`, { headers })).text()
      })
    )
    assert.strictEqual(texts.filter((text) => text === "the bytes").length, cap)
    assert.strictEqual(texts.filter((text) => text === "410").length, clients / 4 - cap)
  })

  /** A download by a client that takes a piece now and then, so that it is under way for a long time. */
  const slowly = async (index: number, path: string, headers: Readonly<Record<string, string>> = {}) => {
    const serverPort = Number(new URL(at(index).url).port)
    const socket = connect(serverPort, "127.0.0.1")
    socket.on("error", () => undefined)
    const lines = Object.entries({ host: "127.0.0.1", accept: "*/*", ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`
    )
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`)
    const resuming = setInterval(() => socket.resume(), 50)
    socket.on("data", () => socket.pause()).once("close", () => clearInterval(resuming))
    const [first] = (await once(socket, "data")) as [Buffer]
    assert.match(first.toString("latin1"), /^HTTP\/1\.1 200 /)
    const clientPort = socket.localPort ?? 0
    assert.isTrue(isEstablished(serverPort, clientPort))
    return {
      /** When the server has closed the connection; what the client has not taken by then is lost. */
      ended: async (): Promise<number> => {
        await until("the download ends", async () =>
          isEstablished(serverPort, clientPort) ? "it goes on" : undefined
        )
        socket.destroy()
        assert.isBelow(socket.bytesRead, large)
        return performance.now()
      }
    }
  }

  /** The instant from which on a request has this status on both. */
  const refused = async (status: number, request: (index: number) => Promise<number>): Promise<number> => {
    const since = await Promise.all(
      [0, 1].map(async (index) => {
        await until("it is refused", async () =>
          (await request(index)) === status ? undefined : "it is not"
        )
        return performance.now()
      })
    )
    return Math.max(...since)
  }

  /** Revokes something by the first process; it has to end on both, and how soon is printed. */
  const ends = async (
    what: string,
    revoke: () => Promise<unknown>,
    over: ReadonlyArray<() => Promise<number>>
  ) => {
    const begun = performance.now()
    await revoke()
    const instants = await Promise.all(over.map((one) => one()))
    const millis = instants.map((instant) => Math.round(instant - begun))
    process.stdout.write(`${what} ended on both processes after ${millis.join(" and ")} ms\n`)
  }

  const statusOf = async (index: number, path: string, headers: Readonly<Record<string, string>>) => {
    const answer = await fetch(`${at(index).url}${path}`, { method: "HEAD", headers })
    return answer.status
  }

  it("end a link that is revoked, in the midst of a download too", async () => {
    const { fileId } = await uploaded(Buffer.alloc(large, "x"))
    const { token } = await linkTo(fileId)
    const download = await slowly(1, `/direct/${token}`)
    await ends(
      "A link and a download by it",
      async () => {
        await asked(at(0), "DELETE", `/api/share-links/${token}`)
        for (const index of [0, 1]) assert.strictEqual((await fetch(urlOf(index, token))).status, 404)
      },
      [() => refused(404, (index) => statusOf(index, `/direct/${token}`, {})), download.ended]
    )
  })

  it("end a key that is revoked, in the midst of a download too", async () => {
    const { id, key: kept } = await newUser()
    const { key, keyId } = await newKey({ user_id: id })
    const { fileId } = await uploaded(Buffer.alloc(large, "x"), key)
    const authorization = `Bearer ${key}`
    const download = await slowly(1, `/api/files/${fileId}`, { authorization })
    await ends(
      "A key and a download by it",
      () => asked(at(0), "DELETE", `/api/v1/keys/${keyId}`, { key: kept }),
      [
        () => refused(401, (index) => statusOf(index, `/api/files/${fileId}`, { authorization })),
        download.ended
      ]
    )
  })

  it("end a session that signs out, in the midst of a download too", async () => {
    const { key } = await newUser()
    const { fileId } = await uploaded(Buffer.alloc(large, "x"), key)
    const cookie = await signedIn(key)
    const download = await slowly(1, `/api/files/${fileId}`, { cookie })
    await ends(
      "A session and a download by it",
      () => asked(at(0), "DELETE", "/api/session", { key: "", headers: { cookie } }),
      [() => refused(401, (index) => statusOf(index, `/api/files/${fileId}`, { cookie })), download.ended]
    )
  })

  it("serve each other's files, and go on with each other's uploads", async () => {
    const { key } = await newUser()
    for (const [index, text] of ["short", "x".repeat(100_000)].entries()) {
      const { directoryId, fileId } = await uploaded(Buffer.from(text), key, index)
      const other = at(index + 1)
      const headers = { authorization: `Bearer ${key}` }
      const read = await fetch(`${other.url}/api/files/${fileId}`, { headers })
      assert.strictEqual(await read.text(), text)
      const archives = await Promise.all(
        [at(index), other].map(async ({ url }) =>
          Buffer.from(await (await fetch(`${url}/api/download/${directoryId}`, { headers })).arrayBuffer())
        )
      )
      assert.isTrue(archives[0]?.equals(archives[1] ?? Buffer.of()))
    }
    const [one, two] = [new TusClient(at(0), key), new TusClient(at(1), key)]
    const path = await one.begin(10, { filename: "parts.txt" })
    assert.strictEqual((await one.patch(path, 0, "01234")).status, 204)
    assert.strictEqual((await two.head(path)).headers.get("upload-offset"), "5")
    const last = await two.patch(path, 5, "56789")
    assert.strictEqual(await one.read(last.headers.get("upload-file-id")), "0123456789")
  })

  it("see each other's devices, flags and what was sent", async () => {
    const { key } = await newUser()
    const made = await asked(at(0), "POST", "/api/devices", {
      key,
      json: { name: "Desk", platform: "desktop" }
    })
    const deviceId = textAt(made, "id")
    const form = new FormData()
    for (const [name, value] of Object.entries({ target: "machine", deviceId })) form.append(name, value)
    form.append("file", new Blob(["sent"]), "sent.txt")
    const fileId = textAt(await asked(at(1), "POST", "/api/send", { key, form }), "fileId")
    const { directoryId } = await uploaded(Buffer.from("flagged"), key, 1)
    await asked(at(0), "POST", "/api/sync/subscriptions", {
      key,
      json: { resourceType: "directory", resourceId: directoryId, scope: "selected", deviceIds: [deviceId] }
    })
    const headers = { "x-device-id": deviceId }
    for (const index of [0, 1]) {
      const { body } = await asked(at(index), "GET", "/api/sync/manifest", { key, headers })
      const { files } = body as { readonly files: ReadonlyArray<Record<string, string | null>> }
      assert.sameMembers(
        files.map(({ directoryId: inside, originalName }) => `${inside} ${originalName}`),
        ["null sent.txt", `${directoryId} shared.bin`]
      )
      assert.include(
        files.map(({ currentFileId }) => currentFileId),
        fileId
      )
    }
    await asked(at(1), "DELETE", `/api/devices/${deviceId}`, { key })
    for (const index of [1, 0]) {
      const gone = () => ask(at(index), "GET", "/api/sync/manifest", { key, headers })
      await until("the device is gone", async () =>
        (await gone()).status === 404 ? undefined : "it is there"
      )
    }
  })

  it("let in a command line that began its login at the other one", async () => {
    const { key } = await newUser()
    const begun = await asked(at(0), "POST", "/api/cli/auth/init", { key: "", json: { name: "build" } })
    const token = textAt(begun, "token")
    const poll = (index: number) => asked(at(index), "GET", `/api/cli/auth/poll?token=${token}`, { key: "" })
    assert.strictEqual(textAt(await poll(1), "status"), "pending")
    const headers = { cookie: await signedIn(key) }
    const options = { key: "", headers, json: { token } }
    const read = await asked(at(1), "POST", "/api/cli/auth/read", options)
    assert.strictEqual(textAt(read, "digits"), textAt(begun, "digits"))
    await asked(at(1), "POST", "/api/cli/auth/complete", options)
    const apiKey = textAt(await poll(0), "apiKey")
    assert.strictEqual(textAt(await poll(1), "status"), "expired")
    for (const index of [1, 0]) {
      const { body } = await asked(at(index), "GET", "/api/devices", { key: apiKey })
      const { devices } = body as { readonly devices: ReadonlyArray<{ readonly name: string }> }
      assert.deepStrictEqual(
        devices.map(({ name }) => name),
        ["build"]
      )
    }
  })

  /** The cookie of a session that the first process opened. */
  const signedIn = async (key: string): Promise<string> => {
    const { headers } = await asked(at(0), "POST", "/api/session", { key })
    return headers.getSetCookie()[0]?.split(";", 1)[0] ?? assert.fail("no cookie")
  }
})
