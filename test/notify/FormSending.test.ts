import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer } from "#test/harness/TestServer.ts"

import { uploaded } from "./attachments/AttachmentStage.ts"
import { api, live, makeStage, type SentBody } from "./Stage.ts"

type Field = readonly [name: string, value: string | Blob, filename?: string]

/** Sends a form of these parts, in this order. */
const sendForm = (key: string, parts: ReadonlyArray<Field>, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ ask }) => {
    const body = new FormData()
    for (const [name, value, filename] of parts)
      if (typeof value === "string") body.append(name, value)
      else body.append(name, value, filename)
    return ask("POST", `${api}/messages`, { key, headers, body })
  })

const base: ReadonlyArray<Field> = [
  ["app", "backup.sh"],
  ["message", "done"]
]
const file = (text: string, name = "a.log", part = "file"): Field => [part, new Blob([text]), name]

/** The files of a message, in their order. */
const filesOf = Effect.fnUntraced(function* (message: string) {
  const sql = yield* SqlClient
  return yield* sql<{
    filename: string
    type: string
    sha256: string
  }>`SELECT a.filename, a.content_type AS type, encode(a.sha256, 'hex') AS sha256
    FROM message_attachments m JOIN attachments a ON a.id = m.attachment_id
    WHERE m.message_id = ${message} ORDER BY m.place`
})

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

layer(TestServer.shared, live)("a form that sends", (it) => {
  it.effect("has the fields of a send, and files by any name, behind the ids", () =>
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
        file("{}", "b c.json")
      ])
      assert.strictEqual(answer.status, 201, JSON.stringify(answer.json))
      const { messages } = answer.json as SentBody
      assert.deepStrictEqual(
        messages.map(({ attachments, project }) => [project.slug, attachments]),
        [["one", 3]]
      )
      const files = yield* filesOf(messages[0]?.id ?? "")
      assert.deepStrictEqual(
        files.map(({ filename, sha256, type }) => ({ filename, sha256, type })),
        [
          { filename: upload.filename, sha256: upload.sha256, type: upload.contentType },
          { filename: "a.log", sha256: sha256("first"), type: "text/plain" },
          { filename: "b_c.json", sha256: sha256("{}"), type: "application/json" }
        ]
      )
    })
  )
})
