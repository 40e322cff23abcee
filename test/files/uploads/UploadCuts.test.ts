import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { RawClient } from "#test/front/RawClient.ts"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { sha256Of } from "../transfers/TransferSteps.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { makeCaller } from "#test/llm/Caller.ts"
import { digestOf, errorOf, metadataOf, told, TusClient } from "./TusClient.ts"

const limits = { uploadSyncMillis: 20, uploadsPerUser: 3, uploadSweepEveryMillis: 200 }

const client = (server: Reachable) =>
  Effect.promise(async () => {
    const caller = await makeCaller(server, 0)
    return { caller, tus: new TusClient(server, caller.key) }
  })

/** A request that has sent the first of its bytes, and no more. */
const begun = (server: Reachable, key: string, path: string, text: string, length: number, offset = 0) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const raw = await RawClient.open(Number(new URL(server.url).port))
      await raw.send(
        `PATCH ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTus-Resumable: 1.0.0\r\n` +
          `Content-Type: application/offset+octet-stream\r\nUpload-Offset: ${offset}\r\nContent-Length: ${length}\r\n\r\n${text}`
      )
      return raw
    }),
    (raw) => Effect.sync(() => raw.destroy())
  )

const idOf = (path: string): string => path.slice("/api/uploads/".length)

/** The offset that GET tells, which ends no request. */
const offsetOf = (tus: TusClient, path: string) =>
  Effect.promise(async () => {
    const { body } = await tus.ask("GET", path)
    return (body as { readonly offset: number }).offset
  })

const text = "0123456789".repeat(30_000)
const sent = 260_000

layer(TestServer.own({ limits }), { excludeTestServices: true })(
  "a resumable upload that is cut off",
  (it) => {
    it.effect("keeps all that came before the cut", () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const { tus } = yield* client(server.server)
        const path = yield* Effect.promise(() => tus.begin(text.length, { filename: "cut" }))
        const raw = yield* begun(server.server, tus.key, path, text.slice(0, 200_000), text.length)
        raw.socket.end()
        yield* eventually(
          "kept",
          Effect.map(offsetOf(tus, path), (offset) => offset === 200_000)
        )
        const head = yield* Effect.promise(() => tus.head(path))
        assert.deepStrictEqual(told(head, "upload-offset"), ["200000"])
        const last = yield* Effect.promise(() => tus.patch(path, 200_000, text.slice(200_000)))
        assert.strictEqual(last.status, 204)
        assert.strictEqual(yield* Effect.promise(() => tus.read(last.headers.get("upload-file-id"))), text)
      })
    )

    it.effect("goes on by a later request, which ends one that still waits for bytes: 409", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { tus } = yield* client(server)
        for (const ending of ["HEAD", "PATCH", "DELETE"] as const) {
          const path = yield* Effect.promise(() => tus.begin(text.length, { filename: "late" }))
          const raw = yield* begun(server, tus.key, path, text.slice(0, sent), text.length)
          yield* eventually(
            "written",
            Effect.map(offsetOf(tus, path), (offset) => offset === sent)
          )
          if (ending === "DELETE") {
            const ended = yield* Effect.promise(() => tus.ask("DELETE", path))
            assert.strictEqual(ended.status, 204)
          } else {
            // A PATCH that is wrong about the offset ends the earlier request, too, and tells the right one.
            const answer = yield* Effect.promise(() =>
              ending === "HEAD" ? tus.head(path) : tus.patch(path, 1, "x")
            )
            const offset = yield* offsetOf(tus, path)
            assert.strictEqual(offset, sent)
            if (ending === "HEAD") assert.deepStrictEqual(told(answer, "upload-offset"), [String(offset)])
            else assert.include(errorOf(answer), `the upload has ${offset} bytes`)
            const last = yield* Effect.promise(() => tus.patch(path, offset, text.slice(offset)))
            assert.strictEqual(last.status, 204)
            assert.strictEqual(
              yield* Effect.promise(() => tus.read(last.headers.get("upload-file-id"))),
              text
            )
          }
          // The answer waits until the rest has come, or not for long.
          yield* Effect.promise(() => raw.send(text.slice(sent)))
          const said = yield* Effect.promise(() => raw.until((heard) => heard.includes("Another request")))
          assert.match(said, /^HTTP\/1\.1 409 /)
        }
      })
    )

    it.effect("keeps what came when its key ends: 401, and another key goes on", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const sql = yield* SqlClient
        const { caller, tus } = yield* client(server)
        const path = yield* Effect.promise(() => tus.begin(text.length, { filename: "revoked" }))
        const other = yield* Effect.promise(() =>
          ask(server, "POST", "/api/v1/keys", { key: caller.key, json: { name: "brief", kind: "account" } })
        )
        const raw = yield* begun(server, textAt(other, "key"), path, text.slice(0, sent), text.length)
        yield* eventually(
          "written",
          Effect.map(offsetOf(tus, path), (offset) => offset === sent)
        )
        yield* Effect.promise(() =>
          ask(server, "DELETE", `/api/v1/keys/${textAt(other, "id")}`, { key: caller.key })
        )
        yield* eventually(
          "ended",
          Effect.map(
            sql`SELECT 1 FROM blob_uploads WHERE busy AND id = ${idOf(path)}`,
            (rows) => rows.length === 0
          )
        )
        yield* Effect.promise(() => raw.send(text.slice(sent)))
        const said = yield* Effect.promise(() => raw.until((heard) => heard.includes("API key")))
        assert.match(said, /^HTTP\/1\.1 401 /)
        const offset = yield* offsetOf(tus, path)
        const last = yield* Effect.promise(() => tus.patch(path, offset, text.slice(offset)))
        assert.strictEqual(yield* Effect.promise(() => tus.read(last.headers.get("upload-file-id"))), text)
      })
    )

    it.effect(
      "becomes a file when it is asked about, and by itself, where the end of its last request was lost",
      () =>
        Effect.gen(function* () {
          const { server } = yield* TestServer
          const sql = yield* SqlClient
          const { tus } = yield* client(server)
          // As if the process had been killed behind the last byte.
          const complete = Effect.fnUntraced(function* (filename: string) {
            const path = yield* Effect.promise(() => tus.begin(4, { filename }))
            yield* Effect.promise(() => tus.patch(path, 0, "abc"))
            yield* sql`UPDATE uploads SET length = 3 WHERE id = ${idOf(path)}`
            return path
          })
          const asked = yield* complete("asked")
          const head = yield* Effect.promise(() => tus.head(asked))
          assert.deepStrictEqual(told(head, "upload-offset", "upload-length"), ["3", "3"])
          assert.strictEqual(yield* Effect.promise(() => tus.read(head.headers.get("upload-file-id"))), "abc")
          const swept = yield* complete("swept")
          yield* eventually(
            "swept",
            Effect.promise(async () => (await tus.ask("GET", swept)).body).pipe(
              Effect.map((body) => (body as { readonly file: unknown }).file !== null)
            )
          )
        })
    )

    it.effect("is over when nothing of it comes for a day: 404, and its bytes count no more", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const sql = yield* SqlClient
        const { tus } = yield* client(server)
        const path = yield* Effect.promise(() => tus.begin(4, { filename: "idle" }))
        const id = idOf(path)
        yield* Effect.promise(() => tus.patch(path, 0, "abc"))
        yield* sql`UPDATE blob_uploads SET expires_at = now() - interval '1 s' WHERE id = ${id}`
        assert.strictEqual((yield* Effect.promise(() => tus.head(path))).status, 404)
        assert.strictEqual((yield* Effect.promise(() => tus.patch(path, 3, "d"))).status, 404)
        yield* eventually(
          "forgotten",
          Effect.map(sql`SELECT 1 FROM uploads WHERE id = ${id}`, (rows) => rows.length === 0)
        )
      })
    )

    it.effect("is one of so many of a user: 409 beyond them, until one ends", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { tus } = yield* client(server)
        const headers = { "upload-length": "1", "upload-metadata": metadataOf({ filename: "many" }) }
        const begin = Effect.promise(() => tus.post(headers))
        const begun = yield* Effect.all(
          Array.from({ length: 6 }, () => begin),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(begun.map(({ status }) => status).toSorted(), [201, 201, 201, 409, 409, 409])
        const refused = begun.find(({ status }) => status === 409)
        assert.strictEqual(refused && errorOf(refused), "A user has at most 3 open uploads")
        const path = begun.find(({ status }) => status === 201)?.headers.get("location") ?? ""
        yield* Effect.promise(() => tus.patch(path, 0, "x"))
        assert.strictEqual((yield* begin).status, 201)
      })
    )

    it.effect("has its length in the quota from its beginning, or as it comes: 507", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { caller, tus } = yield* client(server)
        yield* Effect.promise(() =>
          ask(server, "PATCH", `/api/v1/admin/users/${caller.userId}`, { json: { storage_quota_bytes: 10 } })
        )
        const full = "Quota of 10 bytes reached"
        const fields = { "upload-metadata": metadataOf({ filename: "quota" }) }
        const refused = (headers: Record<string, string>, body?: string) =>
          Effect.map(
            Effect.promise(() => tus.post({ ...fields, ...headers }, body)),
            (answer) => assert.deepStrictEqual([answer.status, errorOf(answer)], [507, full])
          )
        yield* refused({ "upload-length": "11" })
        const path = yield* Effect.promise(() => tus.begin(6, { filename: "quota" }))
        yield* refused({ "upload-length": "5" })
        yield* refused({ "upload-defer-length": "1" }, "12345")
        yield* Effect.promise(() => tus.patch(path, 0, "123456"))
        const later = yield* Effect.promise(() => tus.post({ ...fields, "upload-defer-length": "1" }, "1234"))
        assert.strictEqual(later.status, 201)
        const more = yield* Effect.promise(() => tus.patch(later.headers.get("location") ?? "", 4, "5"))
        assert.deepStrictEqual([more.status, errorOf(more)], [507, full])
      })
    )

    it.effect("is 404 where its directory went meanwhile, and goes on when that is back", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { tus } = yield* client(server)
        const whole = yield* Effect.promise(() => tus.whole("abc", { filename: "first", dir: "moving" }))
        const { body } = yield* Effect.promise(() =>
          ask(server, "GET", `/api/files/${whole.headers.get("upload-file-id")}/versions`, { key: tus.key })
        )
        const { directoryId } = body as { readonly directoryId: string }
        const path = yield* Effect.promise(() => tus.begin(3, { filename: "second", directoryId }))
        const as = (method: string, address: string) =>
          Effect.promise(() => ask(server, method, address, { key: tus.key }))
        assert.strictEqual((yield* as("DELETE", `/api/directories/${directoryId}`)).status, 200)
        assert.strictEqual((yield* Effect.promise(() => tus.patch(path, 0, "def"))).status, 404)
        assert.strictEqual((yield* as("POST", `/api/directories/${directoryId}/restore`)).status, 200)
        const head = yield* Effect.promise(() => tus.head(path))
        assert.strictEqual(yield* Effect.promise(() => tus.read(head.headers.get("upload-file-id"))), "def")
      })
    )

    it.effect("is ended by nobody who may not go on with it", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { caller, tus } = yield* client(server)
        const path = yield* Effect.promise(() => tus.begin(text.length, { filename: "held", dir: "held" }))
        const raw = yield* begun(server, tus.key, path, text.slice(0, sent), text.length)
        yield* eventually(
          "written",
          Effect.map(offsetOf(tus, path), (offset) => offset === sent)
        )
        const key = yield* Effect.promise(() => caller.makeKey({ kind: "account", scopes: ["write:other"] }))
        const other = new TusClient(server, key)
        for (const answer of [
          yield* Effect.promise(() => other.head(path)),
          yield* Effect.promise(() => other.patch(path, sent, "x")),
          yield* Effect.promise(() => other.ask("DELETE", path))
        ])
          assert.strictEqual(answer.status, 404)
        yield* Effect.promise(() => raw.send(text.slice(sent)))
        assert.match(yield* Effect.promise(() => raw.until((heard) => heard.includes("\r\n\r\n"))), / 204 /)
      })
    )

    it.effect("goes where its directory goes, for those alone who may write there", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const sql = yield* SqlClient
        const { caller, tus } = yield* client(server)
        const writer = (bucket: string) =>
          Effect.map(
            Effect.promise(() => caller.makeKey({ kind: "account", scopes: [`write:${bucket}`] })),
            (key) => new TusClient(server, key)
          )
        const [from, to] = [yield* writer("from"), yield* writer("to")]
        const directories = yield* Effect.forEach(["from/moved/x", "to/x", "from/x"], (path) =>
          Effect.promise(async () => {
            const [dir = "", ...names] = path.split("/")
            const whole = await tus.whole("x", { path: names.join("/"), dir })
            const id = whole.headers.get("upload-file-id")
            const { body } = await ask(server, "GET", `/api/files/${id}/versions`, { key: tus.key })
            return (body as { readonly directoryId: string }).directoryId
          })
        )
        const [directoryId = "", parentId = "", fromId = ""] = directories
        const path = yield* Effect.promise(() => from.begin(6, { filename: "a", directoryId }))
        assert.strictEqual((yield* Effect.promise(() => from.patch(path, 0, "abc"))).status, 204)
        assert.strictEqual((yield* Effect.promise(() => to.head(path))).status, 404)
        const moved = yield* Effect.promise(() =>
          ask(server, "PATCH", `/api/directories/${directoryId}`, { key: tus.key, json: { parentId } })
        )
        assert.strictEqual(moved.status, 200)
        assert.strictEqual((yield* Effect.promise(() => from.patch(path, 3, "def"))).status, 404)
        // It goes back while the last transaction waits for the lock of its bytes.
        const back = Effect.promise(() =>
          ask(server, "PATCH", `/api/directories/${directoryId}`, {
            key: tus.key,
            json: { parentId: fromId }
          })
        )
        const run = Effect.runPromiseWith(yield* Effect.context<never>())
        const amid = yield* Effect.gen(function* () {
          yield* sql`SELECT pg_advisory_xact_lock(('x' || ${sha256Of("abcdef").slice(0, 16)})::bit(64)::bigint)`
          const patched = run(Effect.promise(() => to.patch(path, 3, "def")))
          const waiting = sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
          yield* eventually(
            "it waits",
            Effect.map(waiting, (rows) => rows.length > 0)
          )
          assert.strictEqual((yield* back).status, 200)
          return patched
        }).pipe(sql.withTransaction)
        const refused = yield* Effect.promise(() => amid)
        assert.deepStrictEqual([refused.status, errorOf(refused)], [409, "It was moved meanwhile; try again"])
        assert.strictEqual((yield* Effect.promise(() => to.head(path))).status, 404)
        const last = yield* Effect.promise(() => from.head(path))
        assert.strictEqual(last.status, 200)
        assert.strictEqual(
          yield* Effect.promise(() => tus.read(last.headers.get("upload-file-id"))),
          "abcdef"
        )
      })
    )

    it.effect("without a length takes no more of the quota than comes, and what came when it was cut", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { caller, tus } = yield* client(server)
        const mebibyte = 1024 * 1024
        yield* Effect.promise(() =>
          ask(server, "PATCH", `/api/v1/admin/users/${caller.userId}`, {
            json: { storage_quota_bytes: 8 * mebibyte }
          })
        )
        const begin = (length: Readonly<Record<string, string>>) =>
          Effect.promise(() => tus.post({ "upload-metadata": metadataOf({ filename: "open" }), ...length }))
        const path = (yield* begin({ "upload-defer-length": "1" })).headers.get("location") ?? ""
        const raw = yield* Effect.acquireRelease(
          Effect.promise(() => RawClient.open(Number(new URL(server.url).port))),
          (opened) => Effect.sync(() => opened.destroy())
        )
        const piece = (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`
        const come = (bytes: number) =>
          Effect.andThen(
            Effect.promise(() => raw.send(piece("x".repeat(bytes)))),
            eventually(
              "it is there",
              Effect.map(offsetOf(tus, path), (offset) => offset >= bytes)
            )
          )
        yield* Effect.promise(() =>
          raw.send(
            `PATCH ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tus.key}\r\nTus-Resumable: 1.0.0\r\n` +
              "Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
          )
        )
        yield* come(100_000)
        const beside = yield* begin({ "upload-length": String(6 * mebibyte) })
        assert.strictEqual(beside.status, 201, "others have room beside it")
        yield* Effect.promise(() => tus.ask("DELETE", beside.headers.get("location") ?? ""))
        yield* come(3 * mebibyte)
        raw.socket.end()
        const head = yield* Effect.promise(() => tus.head(path))
        const [offset] = told(head, "upload-offset")
        assert.strictEqual(offset, String(100_000 + 3 * mebibyte))
        const rest = yield* begin({ "upload-length": String(8 * mebibyte - Number(offset)) })
        assert.strictEqual(rest.status, 201, "the quota has what came, and no more")
      }).pipe(Effect.scoped)
    )

    it.effect("has no length of a request that was refused", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const { caller, tus } = yield* client(server)
        yield* Effect.promise(() =>
          ask(server, "PATCH", `/api/v1/admin/users/${caller.userId}`, { json: { storage_quota_bytes: 10 } })
        )
        const headers = { "upload-metadata": metadataOf({ filename: "open" }), "upload-defer-length": "1" }
        const path = (yield* Effect.promise(() => tus.post(headers))).headers.get("location") ?? ""
        const refused = (length: number, status: number, more: Readonly<Record<string, string>> = {}) =>
          Effect.gen(function* () {
            const wanted = { "upload-length": String(length), ...more }
            const answer = yield* Effect.promise(() => tus.patch(path, 0, "abc", wanted))
            assert.strictEqual(answer.status, status)
            const head = yield* Effect.promise(() => tus.head(path))
            assert.deepStrictEqual(told(head, "upload-length", "upload-defer-length"), [null, "1"])
          })
        yield* refused(11, 507)
        yield* refused(9, 460, { "upload-checksum": `sha1 ${digestOf("sha1", "x")}` })
        const beside = yield* Effect.promise(() =>
          tus.post({ "upload-metadata": metadataOf({ filename: "beside" }), "upload-length": "7" })
        )
        assert.strictEqual(beside.status, 201, "nor does it count")
        const last = yield* Effect.promise(() => tus.patch(path, 0, "abc", { "upload-length": "3" }))
        assert.strictEqual(last.status, 204)
        assert.isNotNull(last.headers.get("upload-file-id"))
      })
    )

    it.effect("that can become no file keeps no other one from it, and lasts no longer", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const sql = yield* SqlClient
        const { caller, tus } = yield* client(server)
        const good = yield* Effect.promise(() => tus.begin(4, { filename: "good" }))
        yield* Effect.promise(() => tus.patch(good, 0, "abc"))
        const bad = yield* Effect.promise(() => tus.begin(4, { filename: "bad" }))
        yield* Effect.promise(() => tus.patch(bad, 0, "abc"))
        // More than are tried at once, whose directory is gone; idle for longer.
        const gone = `dir_${"0".repeat(22)}`
        yield* sql`UPDATE uploads SET fields = fields || ${JSON.stringify({ dir: null, directoryId: gone })}::jsonb
          WHERE id = ${idOf(bad)}`
        // In one statement: the sweep takes uploads without bytes for left ones.
        yield* sql`WITH held AS (INSERT INTO blob_uploads (id, store, user_id, reserved, expires_at)
          SELECT 'upl_' || n, store, user_id, 0, expires_at - interval '1 hour' FROM blob_uploads, generate_series(1, 101) n
          WHERE id = ${idOf(bad)})
          INSERT INTO uploads (id, user_id, kind, length, metadata, fields, bucket)
          SELECT 'upl_' || n, user_id, 'whole', 0, '', fields, bucket FROM uploads, generate_series(1, 101) n
          WHERE id = ${idOf(bad)}`
        yield* sql`UPDATE uploads SET length = 3 WHERE id IN (${idOf(good)}, ${idOf(bad)})`
        const isFile = (path: string) =>
          Effect.map(
            Effect.promise(() => tus.ask("GET", path)),
            ({ body }) => (body as { readonly file: unknown }).file !== null
          )
        yield* eventually("a file", isFile(good))
        const tries = (id: string) =>
          Effect.map(
            sql<{ triedAt: Date | null; hours: number }>`SELECT u.tried_at AS "triedAt",
              extract(epoch FROM b.expires_at - now())::float8 / 3600 AS hours
              FROM uploads u JOIN blob_uploads b USING (id) WHERE id = ${id}`,
            ([row]) => row
          )
        yield* eventually(
          "tried",
          Effect.map(tries("upl_101"), (row) => row?.triedAt !== null)
        )
        assert.isBelow((yield* tries("upl_1"))?.hours ?? 24, 23.1, "a try does not make its day longer")
        yield* Effect.promise(() => tus.ask("DELETE", bad))
        yield* sql`DELETE FROM blob_uploads WHERE user_id = ${caller.userId}`
      })
    )

    it.effect("is over where a part that it is made of is", () =>
      Effect.gen(function* () {
        const { server } = yield* TestServer
        const sql = yield* SqlClient
        const { tus } = yield* client(server)
        const path = yield* Effect.promise(() => tus.begin(3, { filename: "joined" }))
        const part = `upl_${"0".repeat(22)}`
        yield* sql`UPDATE uploads SET kind = 'joined', parts = ARRAY[${part}] WHERE id = ${idOf(path)}`
        assert.strictEqual((yield* Effect.promise(() => tus.head(path))).status, 410)
      })
    )
  }
)
