import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import type { ChatAnswer } from "../ChatClient.ts"
import { onStage, spends, type Stage } from "../completions/RoutedServer.ts"
import { priceOf } from "../completions/Scripts.ts"
import { says } from "../upstream/Recordings.ts"
import { chunk, type Script, streamHead } from "../upstream/ScriptedUpstream.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const model = "ends/model"
const streaming = { stream: true, max_tokens: 100 }
const hangs: Script = () => [{ silence: true }]
const saysAndHangs: Script = () => [
  { send: streamHead },
  { send: chunk(says("one two ")) },
  { silence: true }
]

interface Shown {
  readonly id: string
  /** a key, or a token of a session */
  readonly key: string
}

const ofSession = "of a session that signed out"

/** The ways to end a key or a session, or the user to whom it belongs. */
const ends: Readonly<Record<string, (stage: Stage, userId: string, shown: Shown) => Promise<unknown>>> = {
  revoked: ({ server }, _, { id }) => ask(server, "DELETE", `/api/v1/keys/${id}`),
  expired: async () => undefined,
  [ofSession]: ({ server }, _, { key }) => ask(server, "DELETE", "/api/session", { key }),
  "of a deleted user": ({ server }, userId) => ask(server, "DELETE", `/api/v1/admin/users/${userId}`)
}

const tokenBy = async ({ server }: Stage, key: string): Promise<string> => {
  const { headers } = await ask(server, "POST", "/api/session", { key })
  const [cookie = ""] = headers.getSetCookie()
  return textAt(await ask(server, "POST", "/api/session/token", { key: "", headers: { cookie } }), "token")
}

/** A call under way whose key then ends: its answer, and how many milliseconds after the end. */
const endAmid = async (
  stage: Stage,
  name: string,
  fields: object
): Promise<{ readonly answer: ChatAnswer; readonly millis: number }> => {
  const { caller, listen, server } = stage
  const asker = await caller(1)
  const expiresAt = name === "expired" ? Date.now() + 2_000 : undefined
  const made = await ask(server, "POST", "/api/v1/keys", {
    json: {
      name: "short",
      kind: "router",
      user_id: asker.userId,
      ...(expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() })
    }
  })
  const asked = listen()
  const key = name === ofSession ? await tokenBy(stage, asker.key) : textAt(made, "key")
  let isAnswered = false
  const answering = asker
    .say(model, "What is up?", fields, { headers: { authorization: `Bearer ${key}` } })
    .finally(() => {
      isAnswered = true
    })
  await until("the call is under way", async () => (asked().length > 0 ? undefined : "not asked"))
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.isFalse(isAnswered, "it goes on while its key is good")
  const end = ends[name] ?? assert.fail(name)
  await end(stage, asker.userId, { id: textAt(made, "id"), key })
  const from = expiresAt ?? Date.now()
  const answer = await answering
  const millis = Date.now() - from
  await until("the model was stopped", async () =>
    asked()[0]?.closedEarly === true ? undefined : "it goes on"
  )
  if (name !== "of a deleted user" && "stream" in fields && answer.status === 200) {
    await spends(asker, Number(priceOf(countTokens("What is up?"), countTokens("one two "))) / 1e12)
  }
  return { answer, millis }
}

layer(ScriptedServer.layer([modelEntry(model)]), { excludeTestServices: true })(
  "an answer whose key ends",
  (it) => {
    for (const name of Object.keys(ends)) {
      it.effect(
        `(${name}) ends within a second: a stream with an error event, charged for what was sent`,
        () =>
          onStage(async (stage) => {
            stage.play({ [model]: saysAndHangs })
            const { answer, millis } = await endAmid(stage, name, streaming)
            assert.isBelow(millis, 1_000)
            assert.deepStrictEqual(
              [answer.status, answer.text, answer.finishReason, answer.isDone],
              [200, "one two ", "error", true],
              answer.raw
            )
            assert.deepInclude(answer.error, { type: "invalid_api_key", code: 401 })
            assert.deepStrictEqual(
              answer.frames.map(({ id }) => id),
              ["gen-1", "gen-1"]
            )
          })
      )

      it.effect(`(${name}) is 401 within a second where nothing was sent, streamed or not`, () =>
        onStage(async (stage) => {
          stage.play({ [model]: hangs })
          for (const fields of [streaming, { max_tokens: 100 }]) {
            const { answer, millis } = await endAmid(stage, name, fields)
            assert.isBelow(millis, 1_000)
            assert.deepStrictEqual([answer.status, answer.error?.code], [401, "invalid_api_key"], answer.raw)
          }
        })
      )
    }

    it.effect("is cut off where it is a download, however slowly its client reads", () =>
      onStage(async ({ caller, server }) => {
        const asker = await caller(1)
        const bytes = 24 * 1024 * 1024
        const form = new FormData()
        form.append("file", new Blob([new Uint8Array(bytes)]), "zeros.bin")
        const file = await ask(server, "POST", "/api/v1/files", { key: asker.key, form })
        const made = await ask(server, "POST", "/api/v1/keys", {
          json: { name: "short", kind: "router", user_id: asker.userId }
        })
        for (const isReading of [false, true]) {
          const { hostname, port } = new URL(server.url)
          const socket = connect(Number(port), hostname)
          const key = isReading ? asker.key : textAt(made, "key")
          socket.write(
            `GET ${textAt(file, "url")} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
          )
          let received = 0
          await new Promise<void>((resolve, reject) => {
            socket.on("error", reject)
            socket.once("data", (piece) => {
              received += piece.length
              resolve()
            })
          })
          socket.pause()
          await ask(server, "DELETE", `/api/v1/keys/${textAt(made, "id")}`)
          await new Promise((resolve) => setTimeout(resolve, 1_000))
          const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()))
          socket.removeAllListeners("error")
          socket.on("error", () => undefined)
          socket.on("data", (piece) => {
            received += piece.length
            if (received >= bytes) socket.destroy()
          })
          socket.resume()
          await closed
          if (isReading) assert.isAtLeast(received, bytes, "another key's goes on")
          else assert.isBelow(received, bytes)
        }
      })
    )
  }
)
