import { request } from "node:http"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { deleteOld } from "#src/notify/log/OldMessages.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { expire, uploaded } from "#test/notify/attachments/AttachmentStage.ts"
import { api, live, makeStage, sent } from "#test/notify/Stage.ts"

const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

/** A message, its page's path, and what is at paths below that. */
const served = Effect.fnUntraced(function* (fields: object = {}) {
  const { ask, url } = yield* TestServer
  const stage = yield* makeStage
  yield* stage.project({ name: "Builds" })
  const key = yield* stage.projectKey()
  const [message] = (yield* sent(key, { body: "long", ...fields })).messages
  const path = (message?.viewUrl ?? "").replace(url, "")
  const get = (below = "", headers: Readonly<Record<string, string>> = {}, method = "GET") =>
    Effect.map(ask(method, `${path}${below}`, { key: "", headers }), (answer) => ({
      ...answer,
      text: Buffer.from(answer.bytes).toString()
    }))
  return { stage, key, id: message?.id ?? "", path, get, ask }
})

layer(TestServer.shared, live)("the page of a message", (it) => {
  it.effect("shows it to those who have its link, with the policy of pages and kept by no shared cache", () =>
    Effect.gen(function* () {
      const { get, path } = yield* served({
        app: "ci",
        title: "Failed <b>",
        message: "see https://example.com/<x>",
        url: "https://example.com/a?b",
        body: "# Heading\n\n- one\n- two <script>x</script>\n"
      })
      const page = yield* get()
      assert.strictEqual(page.status, 200)
      assert.deepInclude(Object.fromEntries(page.headers), {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": pagePolicy,
        "cache-control": "private, no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex, nofollow"
      })
      for (const part of [
        "Failed &lt;b&gt;",
        "Builds",
        "<h2>Heading</h2>",
        "&lt;script&gt;",
        `${path}?source`
      ])
        assert.include(page.text, part)
      assert.notInclude(page.text, "<script")
      const source = yield* get("?source")
      assert.include(source.text, "# Heading")
      assert.notInclude(source.text, "<h2>Heading</h2>")
      const head = yield* get("", {}, "HEAD")
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      assert.strictEqual(head.headers.get("content-security-policy"), pagePolicy)
      const { headers } = yield* (yield* TestServer).ask("GET", "/n/pages.css", { key: "" })
      assert.strictEqual(headers.get("content-type"), "text/css; charset=utf-8")
    })
  )

  it.effect("downloads its body as it was sent", () =>
    Effect.gen(function* () {
      for (const [fields, name, text] of [
        [{ body: "a\u001b[31m<b>\n" }, "message.txt", "a\u001b[31m<b>\n"],
        [{ body: { a: [1] } }, "message.json", '{"a":[1]}'],
        [{ body: "# x", bodyFormat: "markdown" }, "message.md", "# x"],
        [{ body: "x", bodyFormat: "log" }, "message.log", "x"]
      ] as const) {
        const { get } = yield* served(fields)
        const raw = yield* get("/raw")
        assert.deepStrictEqual([raw.status, raw.text], [200, text])
        assert.deepInclude(Object.fromEntries(raw.headers), {
          "content-type": "text/plain; charset=utf-8",
          "content-disposition": `attachment; filename="${name}"`,
          "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
          "x-content-type-options": "nosniff"
        })
      }
    })
  )

  it.effect("is compressed where that is understood", () =>
    Effect.gen(function* () {
      const { path } = yield* served({ body: "line of text\n".repeat(5_000) })
      const { port } = yield* TestServer
      const get = (encodings: string) =>
        Effect.promise(
          () =>
            new Promise<{ readonly encoding: string | undefined; readonly bytes: Buffer }>(
              (resolve, reject) => {
                const asked = request({ port, path, headers: { "accept-encoding": encodings } }, (answer) => {
                  const pieces: Array<Buffer> = []
                  answer.on("data", (piece: Buffer) => pieces.push(piece))
                  answer.on("end", () =>
                    resolve({ encoding: answer.headers["content-encoding"], bytes: Buffer.concat(pieces) })
                  )
                })
                asked.on("error", reject).end()
              }
            )
        )
      const plain = yield* get("identity")
      assert.isUndefined(plain.encoding)
      for (const encodings of ["gzip", "gzip, deflate, br", "*"]) {
        const { bytes, encoding } = yield* get(encodings)
        assert.strictEqual(encoding, "gzip")
        assert.isBelow(bytes.length, 10_000)
        assert.isTrue(gunzipSync(bytes).equals(plain.bytes))
        // With the style that it loads.
        const { bytes: style } = yield* (yield* TestServer).ask("GET", "/n/pages.css", { key: "" })
        assert.isBelow(bytes.length + gzipSync(style).length, 30 * 1024)
      }
      assert.isUndefined((yield* get("br, gzip;q=0")).encoding)
    })
  )

  it.effect("of an unknown, deleted or mangled link is 404, also where its project is deleted", () =>
    Effect.gen(function* () {
      const { ask, get, id, path, stage } = yield* served()
      const other = yield* served()
      const at = (where: string) => ask("GET", where, { key: "" })
      assert.strictEqual((yield* get()).status, 200)
      const changed = `${path.slice(0, -1)}${path.endsWith("A") ? "B" : "A"}`
      for (const wrong of [changed, `${path}x`, `${path}/`, `${path}/b`, "/n/m/", "/n/m/x", `${path}/a/`]) {
        const page = yield* at(wrong)
        assert.strictEqual(page.status, 404, wrong)
        assert.include(page.headers.get("content-type") ?? "", "text/html")
        assert.strictEqual(page.headers.get("content-security-policy"), pagePolicy)
      }
      yield* ask("DELETE", `${api}/messages/${id}`, { key: stage.key })
      yield* ask("DELETE", `${api}/projects/builds`, { key: other.stage.key })
      for (const below of ["", "?source", "/raw", "/a/att_0"]) {
        assert.strictEqual((yield* get(below)).status, 404, below)
        assert.strictEqual((yield* other.get(below)).status, 404, below)
      }
      const refused = yield* ask("POST", path, { key: "" })
      assert.deepStrictEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD, OPTIONS"])
    })
  )

  it.effect("of a message older than MESSAGE_DAYS is 410, before its row is deleted and after", () =>
    Effect.gen(function* () {
      const { ask, get, id, stage } = yield* served()
      const sql = yield* SqlClient
      const age = (days: number) =>
        sql`UPDATE messages SET created_at = now() - ${days} * interval '1 day' WHERE id = ${id}`
      yield* age(89.99)
      yield* deleteOld
      assert.strictEqual((yield* get()).status, 200)
      yield* age(90)
      for (const step of [Effect.void, deleteOld]) {
        yield* step
        for (const below of ["", "/raw", "/a/att_0"]) {
          const page = yield* get(below)
          assert.strictEqual(page.status, 410)
          assert.include(page.text, "Messages have a page for 90 days")
        }
      }
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM messages WHERE id = ${id}`, [])
      yield* ask("DELETE", `${api}/projects/builds`, { key: stage.key })
      assert.strictEqual((yield* get()).status, 404)
    })
  )

  it.effect("and its token are in no log", () =>
    Effect.gen(function* () {
      const { get, path } = yield* served()
      const { ask, logged } = yield* TestServer
      for (const below of ["", "?source", "/raw", "/a/att_0", "/b", "//"]) yield* get(below)
      for (const other of [path.toUpperCase().replace("/N/M", "/N/m"), path.replace("/n/m", "/n/x")])
        yield* ask("GET", other, { key: "" })
      const token = path.replace("/n/m/", "")
      assert.deepStrictEqual(
        logged().filter((line) => line.toLowerCase().includes(token.toLowerCase())),
        []
      )
    })
  )
})

layer(TestServer.shared, live)("the files of a message's page", (it) => {
  it.effect("are listed with heads of texts, and served with ranges, HEAD and ETag under their policy", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, url } = yield* TestServer
      yield* stage.project({ name: "Builds" })
      const key = yield* stage.projectKey()
      const file = (name: string, body: string, type = "") =>
        uploaded(key, {
          query: `?filename=${name}`,
          body,
          headers: type === "" ? {} : { "content-type": type }
        })
      const long = "0123456789abcdef".repeat(8_192)
      const log = yield* file("run.log", `${long}é<tail>`)
      const cut = yield* file("cut.txt", `${"x".repeat(64 * 1024 - 1)}éy`)
      const json = yield* file("a.json", '{"a":[1,2]}')
      const html = yield* file("a.html", "<script>x</script>")
      const svg = yield* file("a.svg", "<svg/>")
      const pdf = yield* file("a.pdf", "%PDF-1.4")
      const bin = yield* file("a.bin", "\u0000")
      const empty = yield* file("empty.log", "")
      const all = [log, cut, json, html, svg, pdf, bin, empty]
      const [message] = (yield* sent(key, { attachments: all.map(({ id }) => id) })).messages
      const path = (message?.viewUrl ?? "").replace(url, "")
      const get = (below: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
        Effect.map(ask(method, `${path}${below}`, { key: "", headers }), (answer) => ({
          ...answer,
          text: Buffer.from(answer.bytes).toString()
        }))
      const page = (yield* get("")).text
      assert.include(page, "8 files")
      assert.strictEqual(page.split("Show the first 64 KB").length - 1, 2)
      assert.notInclude(page, "&lt;tail&gt;")
      // A character that is cut in two is left out.
      assert.notInclude(page, "\ufffd")
      assert.include(page, "&lt;script&gt;x")
      assert.include(page, `<img src="${path}/a/${svg.id}"`)
      assert.include(page, `<a href="${path}/a/${pdf.id}"`)
      const sandbox = "sandbox; default-src 'none'; frame-ancestors 'none'"
      for (const [{ id }, type, policy, disposition] of [
        [log, "text/plain; charset=utf-8", sandbox, 'inline; filename="run.log"'],
        [html, "text/plain; charset=utf-8", sandbox, 'inline; filename="a.html"'],
        [json, "text/plain; charset=utf-8", sandbox, 'inline; filename="a.json"'],
        [svg, "image/svg+xml", sandbox, 'attachment; filename="a.svg"'],
        [pdf, "application/pdf", "frame-ancestors 'none'", 'inline; filename="a.pdf"'],
        [bin, "application/octet-stream", sandbox, 'attachment; filename="a.bin"']
      ] as const) {
        const { headers, status } = yield* get(`/a/${id}`)
        assert.strictEqual(status, 200)
        assert.deepInclude(Object.fromEntries(headers), {
          "content-type": type,
          "content-security-policy": policy,
          "content-disposition": disposition,
          "x-content-type-options": "nosniff",
          "cache-control": "private, no-cache"
        })
      }
      const at = `/a/${log.id}`
      assert.strictEqual((yield* get(at)).text, `${long}é<tail>`)
      const part = yield* get(at, { range: "bytes=16-19" })
      assert.deepStrictEqual([part.status, part.text], [206, "0123"])
      assert.strictEqual(part.headers.get("content-range"), `bytes 16-19/${log.size}`)
      const last = yield* get(at, { range: "bytes=-6" })
      assert.deepStrictEqual([last.status, last.text], [206, "<tail>"])
      assert.strictEqual((yield* get(at, { range: `bytes=${log.size}-` })).status, 416)
      const tag = `"${log.sha256}"`
      assert.strictEqual(part.headers.get("etag"), tag)
      assert.strictEqual((yield* get(at, { "if-none-match": tag })).status, 304)
      const head = yield* get(at, {}, "HEAD")
      assert.deepStrictEqual(
        [head.status, head.headers.get("content-length"), head.text],
        [200, String(log.size), ""]
      )
      assert.strictEqual((yield* get(`/a/${empty.id}`)).text, "")
      const short = yield* get(`/a/${json.id}`, { range: "bytes=1-3" })
      assert.strictEqual(short.text, '"a"')
    })
  )

  it.effect(
    "are of that message alone: others' and unknown ones are 404; an expired one is named, and 410",
    () =>
      Effect.gen(function* () {
        const { get, key } = yield* served()
        const { ask, url } = yield* TestServer
        const [mine, unused] = [yield* uploaded(key, { query: "?filename=old.log" }), yield* uploaded(key)]
        const [message] = (yield* sent(key, { attachments: [mine.id] })).messages
        const path = (message?.viewUrl ?? "").replace(url, "")
        const at = (id: string) => ask("GET", `${path}/a/${id}`, { key: "" })
        assert.strictEqual((yield* get(`/a/${mine.id}`)).status, 404)
        for (const id of [unused.id, `att_${"0".repeat(22)}`, "x", "%00", "..%2f"])
          assert.strictEqual((yield* at(id)).status, 404, id)
        assert.strictEqual((yield* at(mine.id)).status, 200)
        // A message without a body has none to download.
        assert.strictEqual((yield* ask("GET", `${path}/raw`, { key: "" })).status, 404)
        yield* expire(mine.id)
        const gone = yield* at(mine.id)
        assert.strictEqual(gone.status, 410)
        assert.include(Buffer.from(gone.bytes).toString(), "old.log")
        const page = Buffer.from((yield* ask("GET", path, { key: "" })).bytes).toString()
        assert.include(page, "old.log")
        assert.include(page, "was kept until")
        assert.notInclude(page, `/a/${mine.id}`)
      })
  )
})
