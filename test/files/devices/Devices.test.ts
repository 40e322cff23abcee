import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { limits } from "#src/Limits.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { signIn, askBy } from "#test/accounts/sessions/SignedIn.ts"

const live = { excludeTestServices: true } as const
const devices = "/api/devices"
const notFound = { error: "Device not found" }

const makeDevice = (key: string, fields: object = {}) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const made = yield* ask("POST", devices, {
      key,
      json: { name: "Laptop", platform: "desktop", ...fields }
    })
    assert.strictEqual(made.status, 200, JSON.stringify(made.json))
    return textOf(made, "id")
  })

layer(TestServer.shared, live)("devices", (it) => {
  it.effect("are registered, listed oldest first, changed and deleted", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const made = yield* ask("POST", devices, { key, json: { name: "Laptop", platform: "desktop" } })
      assert.strictEqual(made.status, 200)
      assert.deepStrictEqual(Object.keys(made.json as object), ["id"])
      const id = textOf(made, "id")
      assert.match(id, /^dev_[0-9A-Za-z]{22}$/)
      const phone = yield* makeDevice(key, { name: "Phone", platform: "mobile", syncRoot: "/sdcard/Files" })
      const listed = yield* ask("GET", devices, { key })
      const { devices: rows } = listed.json as { readonly devices: ReadonlyArray<Record<string, string>> }
      assert.deepStrictEqual(
        rows.map(({ createdAt, lastSeenAt, ...rest }) => {
          assert.match(createdAt ?? "", /\.\d{3}Z$/)
          assert.match(lastSeenAt ?? "", /\.\d{3}Z$/)
          return rest
        }),
        [
          { id, name: "Laptop", platform: "desktop", syncRoot: "~/sharefiles" },
          { id: phone, name: "Phone", platform: "mobile", syncRoot: "/sdcard/Files" }
        ]
      )
      const changed = yield* ask("PATCH", `${devices}/${id}`, {
        key,
        json: { name: "Desk", syncRoot: "~/f" }
      })
      assert.deepStrictEqual(changed.json, { ...rows[0], name: "Desk", syncRoot: "~/f" })
      const same = yield* ask("PATCH", `${devices}/${id}`, { key, json: {} })
      assert.deepStrictEqual(same.json, changed.json)
      const deleted = yield* ask("DELETE", `${devices}/${id}`, { key })
      assert.deepStrictEqual([deleted.status, deleted.json], [200, { success: true }])
      for (const [method, json] of [
        ["PATCH", { name: "x" }],
        ["DELETE", undefined]
      ] as const) {
        const after = yield* ask(method, `${devices}/${id}`, { key, json })
        assert.deepStrictEqual([after.status, after.json], [404, notFound])
      }
      const left = (yield* ask("GET", devices, { key })).json as { readonly devices: ReadonlyArray<object> }
      assert.lengthOf(left.devices, 1)
    })
  )

  it.effect("are refused by the name of the field that does not fit", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      for (const [fields, start] of [
        [{ platform: "toaster" }, "platform: "],
        [{ name: "" }, "name: "],
        [{ name: "a\nb" }, "name: "],
        [{ name: "a".repeat(101) }, "name: "],
        [{ syncRoot: "" }, "syncRoot: "],
        [{ lastSeenAt: "2026-01-01T00:00:00Z" }, "lastSeenAt: "]
      ] as const) {
        const json = { name: "Laptop", platform: "desktop", ...fields }
        const refused = yield* ask("POST", devices, { key, json })
        assert.strictEqual(refused.status, 400, JSON.stringify(fields))
        assert.isTrue(textOf(refused, "error").startsWith(start), textOf(refused, "error"))
      }
      const id = yield* makeDevice(key)
      const moved = yield* ask("PATCH", `${devices}/${id}`, { key, json: { platform: "web" } })
      assert.strictEqual(moved.status, 400)
    })
  )

  it.effect("are seen by requests with X-Device-Id, to the minute; an unknown one is 404", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const stranger = yield* makeUser()
      const id = yield* makeDevice(key)
      const seenAt = Effect.gen(function* () {
        const { json } = yield* ask("GET", devices, { key })
        return (json as { readonly devices: ReadonlyArray<{ readonly lastSeenAt: string }> }).devices[0]
          ?.lastSeenAt
      })
      const first = yield* seenAt
      const by = (asker: string, device: string) =>
        ask("GET", devices, { key: asker, headers: { "x-device-id": device } })
      assert.strictEqual((yield* by(key, id)).status, 200)
      assert.strictEqual(yield* seenAt, first)
      yield* sql`UPDATE devices SET last_seen_at = now() - interval '61 seconds' WHERE id = ${id}`
      const before = Date.now()
      const later = yield* Effect.andThen(by(key, id), seenAt).pipe(
        Effect.repeat({
          until: (at) => Date.parse(at ?? "") >= before,
          schedule: Schedule.spaced(50)
        })
      )
      assert.isAtLeast(Date.parse(String(later)), before)
      for (const [asker, device] of [
        [key, newId("dev")],
        [key, "nonsense"],
        [key, ""],
        [stranger.key, id]
      ] as const) {
        const refused = yield* by(asker, device)
        assert.deepStrictEqual([refused.status, refused.json], [404, notFound], device)
      }
      // Raw routes too, before anything is looked for; those of bytes without a body.
      for (const [method, path, body] of [
        ["GET", `/api/files/${newId("fv")}`, undefined],
        ["GET", "/api/download/root", undefined],
        ["POST", "/api/upload", notFound],
        ["POST", "/api/cli/upload", notFound],
        ["PUT", "/api/upload/b/a.txt", notFound],
        ["POST", "/api/uploads", notFound],
        ["GET", "/api/uploads", notFound],
        ["GET", "/api/share-links", notFound],
        ["GET", "/api/directories", notFound],
        ["GET", "/api/files?q=a", notFound],
        ["GET", "/api/trash", notFound]
      ] as const) {
        const refused = yield* ask(method, path, { key, headers: { "x-device-id": newId("dev") } })
        assert.deepStrictEqual([refused.status, refused.json], [404, body], path)
      }
    })
  )

  it.effect("are the caller's own, and take the scope full; sessions will do", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const stranger = yield* makeUser()
      const id = yield* makeDevice(key)
      for (const [method, json] of [
        ["PATCH", { name: "x" }],
        ["DELETE", undefined]
      ] as const) {
        const refused = yield* ask(method, `${devices}/${id}`, { key: stranger.key, json })
        assert.deepStrictEqual([refused.status, refused.json], [404, notFound])
      }
      for (const scope of ["read", "write", "read:photos", "write:photos"]) {
        const scoped = yield* makeKey({ scopes: [scope] }, key)
        assert.strictEqual((yield* ask("GET", devices, { key: scoped.key })).status, 403, scope)
      }
      const { key: router } = yield* makeKey({ kind: "router" }, key)
      assert.strictEqual((yield* ask("GET", devices, { key: router })).status, 403)
      assert.strictEqual((yield* askBy(yield* signIn(key), "GET", devices)).status, 200)
    })
  )

  it.effect("are 100 of a user at most, however many are made at once", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const { id: userId, key } = yield* makeUser()
      assert.strictEqual(limits.devicesPerUser, 100)
      yield* sql`INSERT INTO devices (id, user_id, name, platform, sync_root, last_seen_at)
        SELECT 'dev_' || lpad(n::text, 6, '0') || left(md5(${userId}), 16), ${userId}, 'd', 'web', '~', now()
        FROM generate_series(1, 98) n`
      const json = { name: "one more", platform: "web" }
      const made = yield* Effect.all(
        Array.from({ length: 6 }, () => ask("POST", devices, { key, json })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(made.map(({ status }) => status).sort(), [200, 200, 409, 409, 409, 409])
      const refused = yield* ask("POST", devices, { key, json })
      assert.deepStrictEqual(refused.json, { error: "A user has at most 100 devices" })
    })
  )
})
