import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { uploaded, usageOf } from "./attachments/AttachmentStage.ts"
import { contentsOf, filesOf, unusedOf } from "./SentFiles.ts"
import {
  base,
  baseParts,
  end,
  type Field,
  file,
  messagesOf,
  part,
  sendBytes,
  sendForm,
  sendParts
} from "./Forms.ts"
import { faultOf, live, makeStage, send } from "./Stage.ts"

type Fault = readonly [status: number, error: unknown]

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

layer(TestServer.shared, live)("a form that sends", (it) => {
  it.effect("has the fields of a send, and files by any name, which go behind the ids", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      yield* stage.project({ slug: "two" })
      const key = yield* stage.projectKey()
      const upload = yield* uploaded(key)
      const answer = yield* sendForm(key, [
        file("first", "a.log", "whatever"),
        ...base,
        ["project", "one"],
        ["attachments", upload.id],
        ["unknown", "x"],
        file("{}", "b c.json"),
        // An input of a page without a file.
        ["empty", new Blob([]), ""]
      ])
      assert.strictEqual(answer.status, 201, JSON.stringify(answer.json))
      const [message, ...others] = messagesOf(answer)
      assert.deepStrictEqual([message?.project.slug, message?.attachments, others.length], ["one", 3, 0])
      assert.deepStrictEqual(
        (yield* filesOf(message)).map(({ filename, sha256, type }) => ({ filename, sha256, type })),
        [
          { filename: upload.filename, sha256: upload.sha256, type: upload.contentType },
          { filename: "a.log", sha256: sha256("first"), type: "text/plain" },
          { filename: "b_c.json", sha256: sha256("{}"), type: "application/json" }
        ]
      )
      const contents = yield* contentsOf(message)
      assert.deepStrictEqual(
        contents.map(({ bytes, status }) => [status, bytes.toString()]),
        [
          [200, "hello"],
          [200, "first"],
          [200, "{}"]
        ]
      )
    })
  )

  it.effect("takes project and attachments as often as needed, or as one JSON array", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      for (const slug of ["one", "two", "three"]) yield* stage.project({ slug })
      const key = yield* stage.projectKey()
      const slugs = (parts: ReadonlyArray<Field>) =>
        Effect.map(sendForm(key, [...base, ...parts]), (answer) =>
          answer.status === 201 ? messagesOf(answer).map(({ project }) => project.slug) : faultOf(answer)
        )
      assert.deepStrictEqual(yield* slugs([]), ["one", "three", "two"])
      const several: ReadonlyArray<Field> = [
        ["project", "two"],
        ["project", "one"]
      ]
      assert.deepStrictEqual(yield* slugs(several), ["two", "one"])
      assert.deepStrictEqual(yield* slugs([["project", '["three","one"]']]), ["three", "one"])
      assert.deepStrictEqual(yield* slugs([...several, ["project", ' ["three"]']]), ["two", "one", "three"])
      for (const [given, fault] of [
        ["none", [404, "project: not found"]],
        ["[]", [400, "project: expected an id or a slug, or a list of 1 to 100 of them"]],
        ["[1]", [400, "project: expected an id or a slug, or a list of 1 to 100 of them"]],
        ["[", [404, "project: not found"]]
      ] as const)
        assert.deepStrictEqual(yield* slugs([["project", given]]), fault)
      const [a, b, c] = [yield* uploaded(key), yield* uploaded(key), yield* uploaded(key)]
      const lists: ReadonlyArray<Field> = [
        ["attachments", JSON.stringify([c.id, a.id])],
        ["attachments", b.id]
      ]
      const [message] = messagesOf(yield* sendForm(key, [...base, ["project", "one"], ...lists]))
      assert.deepStrictEqual(
        (yield* filesOf(message)).map(({ id }) => id),
        [c.id, a.id, b.id]
      )
    })
  )

  it.effect("has a body of text, or of JSON where its part says so", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask } = yield* TestServer
      yield* stage.project()
      const key = yield* stage.projectKey()
      const json = 'name="body"\r\nContent-Type: application/json; charset=utf-8'
      const shown = Effect.fnUntraced(function* (head: string, text: string) {
        const answer = yield* sendParts(key, [part(head, text)])
        if (answer.status !== 201) return faultOf(answer)[1]
        const [message] = messagesOf(answer)
        const raw = yield* ask("GET", `${new URL(message?.viewUrl ?? "").pathname}/raw`, { key: "" })
        return Buffer.from(raw.bytes).toString()
      })
      assert.strictEqual(yield* shown('name="body"', ' {"a": 1}'), ' {"a": 1}')
      assert.strictEqual(yield* shown(json, ' {"a": 1}'), '{"a":1}')
      assert.strictEqual(yield* shown(json, '"text"'), "text")
      assert.strictEqual(yield* shown(json, "{"), "body: expected JSON, as its part says")
      assert.strictEqual(yield* shown(json, "1"), "body: expected text, an object or an array")
      assert.strictEqual(yield* shown(json, "[".repeat(65)), "body: nested deeper than 64")
    })
  )

  it.effect("is refused where it is no form, a field is there twice, or no UTF-8", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const key = yield* stage.projectKey()
      const given = (...parts: ReadonlyArray<Buffer>) => Effect.map(sendParts(key, parts), faultOf)
      assert.deepStrictEqual(yield* given(part('name="app"', "b")), [400, "app: given twice"])
      assert.deepStrictEqual(yield* given(part('name="title"', Uint8Array.of(0x61, 0xff))), [
        400,
        "title: expected UTF-8"
      ])
      const many = Array.from({ length: 255 }, () => part('name="x"', "x"))
      assert.deepStrictEqual(yield* given(...many), [400, "body: more than 256 parts"])
      assert.deepStrictEqual(yield* given(...many.slice(1)), [404, "project: this key covers none"])
      const whole = Buffer.concat([...baseParts, end])
      const malformed: Fault = [400, "body: the form is cut off or malformed"]
      assert.deepStrictEqual(faultOf(yield* sendBytes(key, whole.subarray(0, -10))), malformed)
      assert.deepStrictEqual(faultOf(yield* sendBytes(key, Buffer.from("{}"))), malformed)
      assert.deepStrictEqual(faultOf(yield* sendBytes(key, whole, "multipart/form-data")), malformed)
      assert.deepStrictEqual(faultOf(yield* sendBytes(key, whole, "multipart/mixed; boundary=x")), [
        415,
        "Content-Type must be application/json or multipart/form-data"
      ])
      assert.deepStrictEqual(faultOf(yield* sendBytes(key, end)), [400, "app: is required"])
    })
  )

  it.effect("has at most 20 files, ids included, and leaves none where it fails", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      const key = yield* stage.projectKey()
      const upload = yield* uploaded(key)
      const before = yield* usageOf(stage.userId)
      const files = (count: number) => Array.from({ length: count }, (_, index) => file(`file ${index}`))
      const ids = (count: number): Field => [
        "attachments",
        JSON.stringify(Array.from({ length: count }, (_, index) => `att_${index}`))
      ]
      const refused = (parts: ReadonlyArray<Field>) =>
        Effect.gen(function* () {
          const fault = faultOf(yield* sendForm(key, parts))
          assert.strictEqual(yield* unusedOf(stage.userId), 1)
          assert.deepStrictEqual(yield* usageOf(stage.userId), before)
          return fault
        })
      const tooMany: Fault = [400, "attachments: at most 20"]
      assert.deepStrictEqual(yield* refused([...base, ids(19), ...files(2)]), tooMany)
      assert.deepStrictEqual(yield* refused([...files(1), ids(20), ...base]), tooMany)
      assert.deepStrictEqual(yield* refused([ids(21), ...files(1)]), tooMany)
      assert.deepStrictEqual(yield* refused([...files(1), ["app", "a"]]), [400, "message: is required"])
      assert.deepStrictEqual(yield* refused([...files(2), ...base, ["project", "none"]]), [
        404,
        "project: not found"
      ])
      assert.deepStrictEqual(yield* refused([...files(1), ...base, ["attachments", "att_none"]]), [
        400,
        "attachments[0]: no unused upload of this account"
      ])
      const cut = Buffer.concat([...baseParts, part('name="f"; filename="a"', "text"), end])
      assert.strictEqual((yield* sendBytes(key, cut.subarray(0, -20))).status, 400)
      assert.strictEqual(yield* unusedOf(stage.userId), 1)
      const sent = yield* sendForm(key, [...base, ["attachments", upload.id], ...files(3)])
      assert.strictEqual(messagesOf(sent)[0]?.attachments, 4)
    })
  )

  it.effect("with an Idempotency-Key is compared by its fields and the content of its files", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      const key = yield* stage.projectKey()
      const once = { "idempotency-key": "form" }
      const given = (text: string, name: string) => sendForm(key, [...base, file(text, name)], once)
      const twins = yield* Effect.all([given("same", "a.log"), given("same", "a.log")], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(twins[0].json, twins[1].json)
      assert.lengthOf(messagesOf(twins[0]), 1)
      const again = yield* given("same", "other.log")
      assert.deepStrictEqual([again.status, again.json], [201, twins[0].json])
      assert.strictEqual(again.headers.get("idempotent-replay"), "true")
      const used: Fault = [409, "This Idempotency-Key was used for another request"]
      assert.deepStrictEqual(faultOf(yield* given("changed", "a.log")), used)
      assert.deepStrictEqual(faultOf(yield* send(key, { app: "backup.sh", message: "done" }, once)), used)
      assert.strictEqual(yield* unusedOf(stage.userId), 0)
      // The same fields without files are the same request, as JSON and as a form.
      const plain = { "idempotency-key": "plain" }
      const form = yield* sendForm(key, base, plain)
      const json = yield* send(key, { app: "backup.sh", message: "done" }, plain)
      assert.deepStrictEqual([json.json, json.headers.get("idempotent-replay")], [form.json, "true"])
    })
  )

  it.effect("costs one send, whatever its files", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      yield* stage.project()
      const key = yield* stage.projectKey({ rateLimitPerMinute: 2 })
      const left = (answer: { readonly headers: Headers }) => answer.headers.get("ratelimit-remaining")
      const first = yield* sendForm(key, [...base, file("a"), file("b"), file("c")])
      assert.deepStrictEqual([first.status, left(first)], [201, "1"])
      assert.strictEqual(left(yield* sendForm(key, base)), "0")
      const refused = yield* sendForm(key, [...base, file("a")])
      assert.strictEqual(refused.status, 429)
      assert.match(String(faultOf(refused)[1]), /^Sends are limited to 2 in 60 s; try again in \d+ s$/)
    })
  )
})
