import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, afterAll, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { blobFiles, uploadFiles } from "#test/infra/blobs/StoredBlobs.ts"
import { api, faultOf, invalidKey, makeStage, sent } from "#test/notify/Stage.ts"
import { expire, rowOf, upload, uploaded, usageOf } from "./AttachmentStage.ts"

const mib = 1024 * 1024
const maxBytes = 6 * mib
const quotaBytes = 8 * mib

const live = { excludeTestServices: true } as const

/** A user with a key that sends as often as it wants. */
const newSender = Effect.gen(function* () {
  const stage = yield* makeStage
  yield* stage.project()
  return { ...stage, sender: yield* stage.projectKey({ rateLimitPerMinute: 6_000 }) }
})

const headOf = (key: string, more: string): string =>
  `POST ${api}/attachments?filename=a.bin HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${more}\r\n\r\n`

const bytes = (size: number) => new Uint8Array(size).fill(size % 251)

describeWith(smallDisk, "attachments in a directory of their own, on a disk of 16 MiB,", () => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-"))
  const disk = new SmallDisk(join(home, "attachments"), 16)
  afterAll(() => {
    disk.remove()
    rmSync(home, { recursive: true })
  })
  const settings = {
    attachmentsDirectory: disk.directory,
    attachmentQuotaBytes: quotaBytes,
    maxAttachmentBytes: maxBytes,
    filesMinFreeBytes: mib,
    limits: { attachmentSweepEveryMillis: 50, blobCollectEveryMillis: 50, blobKeptMillis: 0 }
  }

  /** Nothing of an owner's is kept or on its way. */
  const nothingOf = (userId: string) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const usage = yield* usageOf(userId)
      const rows = yield* sql`SELECT 1 FROM attachments WHERE user_id = ${userId}`
      return rows.length === 0 && usage?.attachments === 0 && usage.reserved === 0
    })

  layer(TestServer.own(settings), live)("an upload", (it) => {
    it.effect("that is cut at any byte leaves nothing, and a slow one is 408", () =>
      Effect.gen(function* () {
        const { port } = yield* TestServer
        const { projectKey, sender, userId } = yield* newSender
        const slowly = Effect.gen(function* () {
          const client = yield* Effect.promise(() => RawClient.open(port))
          const head = headOf(yield* projectKey(), "Content-Length: 100000")
          yield* Effect.promise(() => client.send(`${head}12345`))
          const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
          client.destroy()
          return answer
        })
        const slow = yield* Effect.forkScoped(slowly)
        const body = "0123456789"
        const chunked = "4\r\n0123\r\n6\r\n456789\r\n0\r\n"
        const ofLength = headOf(sender, `Content-Length: ${body.length}`)
        const inChunks = headOf(sender, "Transfer-Encoding: chunked")
        // The last chunk ends a body (RFC 9112 8): one that lacks only the line end behind it is taken.
        for (const [head, content] of [
          [ofLength, body],
          [inChunks, chunked]
        ] as const) {
          const whole = head + content
          const cutAt = (cut: number) =>
            Effect.promise(async () => {
              const client = await RawClient.open(port)
              await client.send(whole.slice(0, cut))
              client.socket.end()
              client.destroy()
            })
          const heads = Array.from({ length: head.length }, (_, cut) => cut)
          yield* Effect.forEach(
            heads.filter((cut) => cut > head.length - 40 || cut % 7 === 0),
            cutAt,
            { concurrency: 8, discard: true }
          )
          // One by one: what comes in chunks reserves as much as may come, and a second one would be 507.
          for (let cut = head.length; cut < whole.length; cut++) {
            yield* cutAt(cut)
            yield* eventually(`nothing is left of ${cut} bytes`, nothingOf(userId))
          }
        }
        const answer = yield* Fiber.join(slow)
        assert.strictEqual(statusOf(answer), 408)
        assert.isTrue(answer.endsWith('{"error":"body: comes too slowly"}'))
        yield* eventually("nothing is left", nothingOf(userId))
        assert.deepStrictEqual(uploadFiles(disk.directory), [])
        assert.deepStrictEqual(blobFiles(disk.directory), [])
      })
    )

    it.effect("has at most MAX_ATTACHMENT_SIZE bytes, whether its length is told or not", () =>
      Effect.gen(function* () {
        const { sender, userId } = yield* newSender
        const tooLarge = [413, `body: at most ${maxBytes} bytes`] as const
        assert.deepStrictEqual(faultOf(yield* upload(sender, { body: bytes(maxBytes + 1) })), tooLarge)
        const { port } = yield* TestServer
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() => client.send(headOf(sender, "Transfer-Encoding: chunked")))
        const piece = Buffer.concat([Buffer.from("100000\r\n"), bytes(mib), Buffer.from("\r\n")])
        for (let sentMib = 0; sentMib < 7; sentMib++) yield* Effect.promise(() => client.send(piece))
        yield* Effect.promise(() => client.send("0\r\n\r\n"))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        client.destroy()
        assert.deepStrictEqual(statusOf(answer), 413)
        assert.isTrue(answer.endsWith(JSON.stringify({ error: tooLarge[1] })))
        yield* eventually("nothing is left", nothingOf(userId))
        const made = yield* uploaded(sender, { body: bytes(maxBytes) })
        assert.strictEqual(made.size, maxBytes)
        yield* expire(made.id)
        yield* eventually(
          "the bytes are gone",
          Effect.sync(() => blobFiles(disk.directory).length === 0)
        )
      })
    )

    it.effect("that would exceed the owner's quota, with what is on its way, is 507", () =>
      Effect.gen(function* () {
        const { port } = yield* TestServer
        const { sender, userId } = yield* newSender
        const reached = [507, `Quota of ${quotaBytes} bytes for attachments reached`] as const
        const one = yield* uploaded(sender, { body: bytes(3 * mib) })
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() => client.send(`${headOf(sender, `Content-Length: ${3 * mib}`)}x`))
        yield* eventually(
          "it is on its way",
          Effect.map(usageOf(userId), (usage) => usage?.reserved === 3 * mib)
        )
        assert.deepStrictEqual(faultOf(yield* upload(sender, { body: bytes(2 * mib + 1) })), reached)
        const two = yield* uploaded(sender, { body: bytes(2 * mib) })
        // Another owner has a quota of their own, and files count for another one.
        yield* uploaded((yield* newSender).sender)
        client.destroy()
        yield* eventually(
          "its place is free",
          Effect.map(usageOf(userId), (usage) => usage?.reserved === 0)
        )
        yield* uploaded(sender, { body: bytes(3 * mib) })
        assert.deepStrictEqual(faultOf(yield* upload(sender, { body: bytes(1) })), reached)
        for (const { id } of [one, two]) yield* expire(id)
        yield* eventually(
          "its place is free",
          Effect.map(usageOf(userId), (usage) => usage?.attachments === 3 * mib)
        )
        assert.strictEqual((yield* upload(sender, { body: bytes(1) })).status, 200)
        const sql = yield* SqlClient
        yield* sql`UPDATE attachments SET expires_at = now()`
        yield* eventually(
          "all are gone",
          Effect.sync(() => blobFiles(disk.directory).length === 0)
        )
      })
    )

    it.effect("of the same bytes twice at once is two files with one blob", () =>
      Effect.gen(function* () {
        const { sender } = yield* newSender
        const twins = yield* Effect.all(
          [uploaded(sender, { body: bytes(mib) }), uploaded(sender, { body: bytes(mib) })],
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(twins.map(({ id }) => id)).size, 2)
        assert.strictEqual(new Set(twins.map(({ sha256 }) => sha256)).size, 1)
        assert.lengthOf(blobFiles(disk.directory), 1)
        const [first, second] = twins.map(({ id }) => id)
        yield* expire(first ?? "")
        yield* eventually(
          "one is gone",
          Effect.map(rowOf(first ?? ""), (row) => row === undefined)
        )
        yield* Effect.sleep(200)
        assert.lengthOf(blobFiles(disk.directory), 1)
        yield* expire(second ?? "")
        yield* eventually(
          "both are gone",
          Effect.sync(() => blobFiles(disk.directory).length === 0)
        )
      })
    )

    it.effect("on a full disk is 507 and leaves nothing, before it and amid it", () =>
      Effect.gen(function* () {
        const { port } = yield* TestServer
        const { sender, userId } = yield* newSender
        const full = { error: "The disk is full; the attachment was not stored" }
        yield* Effect.promise(() => disk.fill(2 * mib))
        assert.deepStrictEqual(faultOf(yield* upload(sender, { body: bytes(1.5 * mib) })), [507, full.error])
        yield* Effect.promise(() => disk.free())
        const client = yield* Effect.promise(() => RawClient.open(port))
        const size = 4 * mib
        yield* Effect.promise(() => client.send(headOf(sender, `Content-Length: ${size}`)))
        yield* Effect.promise(() => client.send(bytes(mib)))
        yield* eventually(
          "it has begun",
          Effect.sync(() => uploadFiles(disk.directory).length === 1)
        )
        yield* Effect.promise(() => disk.fill())
        yield* Effect.promise(() => client.send(bytes(size - mib)))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        client.destroy()
        assert.strictEqual(statusOf(answer), 507)
        assert.isTrue(answer.endsWith(JSON.stringify(full)))
        yield* Effect.promise(() => disk.free())
        yield* eventually("nothing is left", nothingOf(userId))
        assert.deepStrictEqual(uploadFiles(disk.directory), [])
        assert.strictEqual((yield* upload(sender, { body: bytes(mib) })).status, 200)
      })
    )

    it.effect("whose key is revoked amid it is 401 and leaves nothing", () =>
      Effect.gen(function* () {
        const { ask, port } = yield* TestServer
        const { key, sender, userId } = yield* newSender
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() => client.send(`${headOf(sender, "Content-Length: 100")}12345`))
        const { json } = yield* ask("GET", `${api}/project-keys`, { key })
        const [made] = (json as { readonly keys: ReadonlyArray<{ readonly id: string }> }).keys
        yield* ask("DELETE", `${api}/project-keys/${made?.id}`, { key })
        yield* Effect.sleep(1_000)
        yield* Effect.promise(() => client.send("x".repeat(95)))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        client.destroy()
        assert.strictEqual(statusOf(answer), 401)
        assert.isTrue(answer.endsWith(JSON.stringify({ error: invalidKey })))
        yield* eventually("nothing is left", nothingOf(userId))
      })
    )

    it.effect(
      "goes when it is not used in time; used its bytes go after 30 days, and its row with its messages",
      () =>
        Effect.gen(function* () {
          const { ask, url } = yield* TestServer
          const { key, sender, userId } = yield* newSender
          const [unused, used] = [
            yield* uploaded(sender),
            yield* uploaded(sender, { query: "?filename=used.log" })
          ]
          const [message] = (yield* sent(sender, { attachments: [used.id] })).messages
          yield* expire(unused.id)
          yield* expire(used.id)
          yield* eventually(
            "the unused one is gone",
            Effect.map(rowOf(unused.id), (row) => row === undefined)
          )
          yield* eventually(
            "the other's bytes are gone",
            Effect.map(rowOf(used.id), (row) => row?.state === "expired" && !row.isReferred)
          )
          assert.strictEqual((yield* usageOf(userId))?.attachments, 0)
          const page = yield* ask("GET", (message?.viewUrl ?? "").replace(url, ""), { key: "" })
          assert.include(Buffer.from(page.bytes).toString(), "used.log")
          yield* ask("DELETE", `${api}/messages/${message?.id}`, { key })
          assert.isUndefined(yield* rowOf(used.id))
          // One whose message is deleted before it expires goes, too.
          const early = yield* uploaded(sender)
          const [second] = (yield* sent(sender, { attachments: [early.id] })).messages
          yield* ask("DELETE", `${api}/messages/${second?.id}`, { key })
          yield* eventually("nothing is left", nothingOf(userId))
        })
    )

    it.effect("is shown on /readyz and /metrics beside the other blobs", () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const { json } = yield* ask("GET", "/readyz")
        const { components } = json as { readonly components: Readonly<Record<string, unknown>> }
        assert.deepStrictEqual(
          [components["blobs"], components["attachments"]],
          [{ status: "up" }, { status: "up" }]
        )
        const metrics = Buffer.from((yield* ask("GET", "/metrics")).bytes).toString()
        assert.match(metrics, /^signalbox_blobs\{directory="attachments"\} \d+$/m)
        assert.match(metrics, /^signalbox_notify_attachment_bytes \d+$/m)
      })
    )
  })
})

layer(TestServer.own({ attachmentsDirectory: null }), live)(
  "a server without storage for attachments",
  (it) => {
    it.effect("answers uploads with 501, after the key, before all else, and sends messages", () =>
      Effect.gen(function* () {
        const { sender } = yield* newSender
        const off = [501, "This server has no storage for attachments"] as const
        const form = { "content-type": "multipart/form-data; boundary=b" }
        assert.deepStrictEqual(faultOf(yield* upload(sender)), off)
        assert.deepStrictEqual(faultOf(yield* upload(sender, { headers: form })), off)
        assert.deepStrictEqual(faultOf(yield* upload("")), [401, invalidKey])
        assert.lengthOf((yield* sent(sender, { body: "x" })).messages, 1)
      })
    )
  }
)
