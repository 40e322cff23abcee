import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { expectStatus, newClient, outcomeOf, sharedTree } from "./TreeClient.ts"
import { ensured, faultsOfTree, written } from "./TreeSteps.ts"

layer(sharedTree, { excludeTestServices: true, timeout: 60_000 })("the quota of a user", (it) => {
  it.effect("is what an administrator gives, over FILES_QUOTA; versions and the trash count", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, ok, outcome, scoped, userId } = yield* newClient
      const user = `/api/v1/admin/users/${userId}`
      const give = (storage_quota_bytes: unknown) => ask("PATCH", user, { json: { storage_quota_bytes } })
      assert.notProperty((yield* ask("GET", user)).json, "storage_quota_bytes")
      assert.deepInclude(expectStatus(yield* give(10), 200).json, { storage_quota_bytes: 10 })
      assert.match(outcomeOf(yield* give(-1)), /^400 storage_quota_bytes: /)
      assert.match(outcomeOf(yield* ask("PATCH", user, { key, json: { storage_quota_bytes: 1 } })), /^403 /)
      assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 0, quotaBytes: 10 })

      const docs = yield* ensured(userId, "docs")
      const old = yield* written(docs, "f", "1234")
      const now = yield* written(docs, "f", "5678")
      const full = "507 Quota of 10 bytes reached"
      assert.strictEqual(yield* outcome("POST", `files/${now.id}/copy`, { onConflict: "rename" }), full)
      assert.strictEqual(yield* outcome("POST", `files/${old.id}/restore`), full)
      const put = (path: string) => ask("PUT", `/api/upload/docs/${path}`, { key, body: "123" })
      assert.strictEqual(outcomeOf(yield* put("g")), full)
      yield* ok("DELETE", `files/${now.id}`)
      assert.strictEqual(outcomeOf(yield* put("g")), full)
      assert.strictEqual(
        yield* outcome("DELETE", "trash", undefined, yield* scoped("write")),
        "403 This takes the scope full"
      )
      yield* ok("DELETE", "trash")
      assert.isBelow((yield* put("g")).status, 300)
      yield* give(null)
      assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 3, quotaBytes: null })
      assert.deepStrictEqual(yield* faultsOfTree(userId), [])
    })
  )

  it.effect("holds however many copies are made at once", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { ok, send, userId } = yield* newClient
      yield* ask("PATCH", `/api/v1/admin/users/${userId}`, { json: { storage_quota_bytes: 20 } })
      const docs = yield* ensured(userId, "docs")
      const file = yield* written(docs, "f", "12345")
      const copies = yield* Effect.all(
        Array.from({ length: 8 }, (_, index) =>
          send("POST", `files/${file.id}/copy`, { name: `copy ${index}` })
        ),
        { concurrency: "unbounded" }
      )
      const outcomes = copies.map(({ status }) => status).toSorted((one, other) => one - other)
      assert.deepStrictEqual(outcomes, [201, 201, 201, 507, 507, 507, 507, 507])
      assert.deepInclude(yield* ok("GET", "storage"), { usedBytes: 20 })
    })
  )
})
