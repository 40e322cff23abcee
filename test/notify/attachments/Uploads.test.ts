import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, faultOf, invalidKey, live, makeStage, otherKind } from "#test/notify/Stage.ts"
import { rowOf, upload, uploaded, usageOf } from "./AttachmentStage.ts"

const day = 86_400

layer(TestServer.shared, live)("an upload of an attachment", (it) => {
  it.effect("is the raw body; it is answered with all that is known of it, and kept for a day", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const bytes = Buffer.from("2026-11-23 all is well\n")
      const made = yield* uploaded(key, { query: "?filename=backup.log", body: bytes })
      assert.match(made.id, /^att_[0-9A-Za-z]{22}$/)
      const { expiresAt, id, ...rest } = made
      assert.deepStrictEqual(rest, {
        filename: "backup.log",
        contentType: "text/plain",
        size: bytes.length,
        sha256: createHash("sha256").update(bytes).digest("hex")
      })
      assert.closeTo((Date.parse(expiresAt) - Date.now()) / 1000, day, 60)
      const row = yield* rowOf(id)
      assert.deepInclude(row, { state: "unused", isReferred: true })
      assert.closeTo(row?.seconds ?? 0, day, 60)
      assert.deepStrictEqual({ ...(yield* usageOf(stage.userId)) }, {
        attachments: bytes.length,
        files: 0,
        reserved: 0
      } as object)
      // An empty file is a file.
      assert.strictEqual((yield* uploaded(key, { body: "" })).size, 0)
    })
  )

  it.effect("has a safe name: of the query, else of X-Filename, else `file`", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const named = (query: string, header?: string) =>
        Effect.map(
          uploaded(key, { query, headers: header === undefined ? {} : { "x-filename": header } }),
          ({ filename }) => filename
        )
      assert.strictEqual(yield* named("?filename=a.txt", "b.txt"), "a.txt")
      assert.strictEqual(yield* named("?filename=", "b.txt"), "b.txt")
      assert.strictEqual(yield* named("", ""), "file")
      assert.strictEqual(yield* named(""), "file")
      assert.strictEqual(yield* named("?filename=a%20b%2Bc+d%00%0A%22.txt"), "a_b_c_d___.txt")
      assert.strictEqual(yield* named("?filename=%F0%9F%93%8E%C3%A9%E2%80%AE%ED%A0%80.png"), "______.png")
      assert.strictEqual(yield* named("?filename=../../etc/passwd"), ".._.._etc_passwd")
      // The bytes of a header are UTF-8.
      const header = Buffer.from("caf\u00e9 \u{1f4ce}.md").toString("latin1")
      assert.strictEqual(yield* named("", header), "caf___.md")
      assert.strictEqual(yield* named(`?filename=${"x".repeat(300)}.tar`), `${"x".repeat(251)}.tar`)
    })
  )

  it.effect("has the type that was sent, or one by its name where none was or it says nothing", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const typed = (filename: string, type?: string) =>
        Effect.map(
          uploaded(key, {
            query: `?filename=${filename}`,
            headers: type === undefined ? {} : { "content-type": type }
          }),
          ({ contentType }) => contentType
        )
      assert.strictEqual(yield* typed("a.png", "text/plain; charset=utf-8"), "text/plain; charset=utf-8")
      for (const nothing of [
        undefined,
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "APPLICATION/X-WWW-FORM-URLENCODED; charset=UTF-8",
        "no type",
        "text/html\tx"
      ])
        assert.strictEqual(yield* typed("a.PNG", nothing), "image/png", nothing)
      assert.strictEqual(yield* typed("unknown.bin"), "application/octet-stream")
      assert.strictEqual(yield* typed("noextension"), "application/octet-stream")
    })
  )

  it.effect("is by a project key alone, and counts as a send before its body is looked at", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      assert.deepStrictEqual(faultOf(yield* upload("")), [401, invalidKey])
      assert.deepStrictEqual(faultOf(yield* upload(`prj_${"0".repeat(40)}`)), [401, invalidKey])
      assert.deepStrictEqual(faultOf(yield* upload(stage.key)), [401, otherKind])
      const key = yield* stage.projectKey({ rateLimitPerMinute: 2 })
      const first = yield* upload(key)
      assert.strictEqual(first.headers.get("ratelimit-limit"), "2")
      // A refused one counts too.
      assert.strictEqual((yield* upload(key, { headers: form })).status, 415)
      const refused = yield* upload(key, { headers: form })
      assert.strictEqual(refused.status, 429)
      assert.isAbove(Number(refused.headers.get("retry-after")), 0)
    })
  )

  it.effect("as a form is 415", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      assert.deepStrictEqual(faultOf(yield* upload(key, { headers: form })), [
        415,
        "The body is the file itself, without a form; forms with files go to POST /api/v1/messages"
      ])
    })
  )

  it.effect("has no other method", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const refused = yield* ask("GET", `${api}/attachments`)
      assert.deepStrictEqual([refused.status, refused.headers.get("allow")], [405, "POST, OPTIONS"])
    })
  )
})

const form = { "content-type": "multipart/form-data; boundary=b" }
