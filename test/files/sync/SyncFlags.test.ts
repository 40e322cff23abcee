import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { sweep } from "#src/files/sync/SyncFlags.ts"
import { limits } from "#src/Limits.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { makeTree } from "./SyncedTree.ts"

const live = { excludeTestServices: true } as const
const subscriptions = "/api/sync/subscriptions"

layer(TestServer.shared, live)("flags of synchronisation", (it) => {
  it.effect("are set, listed with their fields, changed and taken away", () =>
    Effect.gen(function* () {
      const { ask, device, directory, file, flag, key } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const { groupId } = yield* file(bucket, "a.txt")
      const laptop = yield* device("Laptop")
      const listed = Effect.map(ask("GET", subscriptions, { key }), ({ json }) => json)
      assert.deepStrictEqual(yield* listed, { subscriptions: [], excluded: [] })
      const first = yield* flag("directory", bucket.id)
      assert.deepStrictEqual([first.status, first.json], [200, { success: true, enabled: true }])
      const second = yield* flag("file", groupId, { scope: "selected", deviceIds: [laptop, laptop] })
      assert.deepStrictEqual(second.json, { success: true, enabled: true })
      const ofBucket = {
        resourceType: "directory",
        resourceId: bucket.id,
        enabled: true,
        scope: "all",
        deviceIds: []
      }
      const ofFile = {
        resourceType: "file",
        resourceId: groupId,
        enabled: true,
        scope: "selected",
        deviceIds: [laptop]
      }
      assert.deepStrictEqual(yield* listed, { subscriptions: [ofBucket, ofFile], excluded: [] })
      yield* flag("file", groupId, { scope: "all", deviceIds: [newId("dev")] })
      assert.deepStrictEqual(yield* listed, {
        subscriptions: [ofBucket, { ...ofFile, scope: "all", deviceIds: [] }],
        excluded: []
      })
      const away = yield* flag("directory", bucket.id, { enabled: false })
      assert.deepStrictEqual(away.json, { success: true, enabled: false })
      assert.deepStrictEqual(yield* listed, {
        subscriptions: [{ ...ofFile, scope: "all", deviceIds: [] }],
        excluded: []
      })
    })
  )

  it.effect("exclude below a flagged directory, until that flag is taken away", () =>
    Effect.gen(function* () {
      const { ask, directory, file, flagged, key, names } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const plans = yield* directory(bucket, "plans")
      const deep = yield* directory(plans, "deep")
      yield* file(plans, "plan.txt")
      const { groupId } = yield* file(deep, "deep.txt")
      yield* file(bucket, "a.txt")
      const excluded = Effect.map(
        ask("GET", subscriptions, { key }),
        ({ json }) => (json as { readonly excluded: unknown }).excluded
      )
      yield* flagged("directory", bucket.id)
      yield* flagged("directory", plans.id, { enabled: false })
      assert.deepStrictEqual(yield* excluded, [{ resourceType: "directory", resourceId: plans.id }])
      assert.deepStrictEqual(yield* names(), ["Work/", "a.txt"])
      yield* flagged("directory", deep.id)
      assert.deepStrictEqual(yield* names(), ["Work/", "a.txt", "deep.txt", "deep/"])
      yield* flagged("file", groupId, { enabled: false })
      assert.deepStrictEqual(yield* names(), ["Work/", "a.txt", "deep/"])
      // Below an exclusion there is nothing to take away.
      yield* flagged("directory", bucket.id, { enabled: false })
      assert.deepStrictEqual(yield* excluded, [{ resourceType: "file", resourceId: groupId }])
      assert.deepStrictEqual(yield* names(), ["deep/"])
      yield* flagged("directory", deep.id, { enabled: false })
      assert.deepStrictEqual(yield* excluded, [])
      yield* flagged("directory", bucket.id)
      assert.deepStrictEqual(yield* names(), ["Work/", "a.txt", "deep.txt", "deep/", "plan.txt", "plans/"])
    })
  )

  it.effect("refuse the Inbox and what is in it, by the field", () =>
    Effect.gen(function* () {
      const { directory, file, flag } = yield* makeTree
      const inbox = yield* directory(undefined, "Inbox", "inbox")
      const below = yield* directory(inbox, "below")
      const { groupId } = yield* file(below, "a.txt")
      for (const [type, id] of [
        ["directory", inbox.id],
        ["directory", below.id],
        ["file", groupId]
      ] as const) {
        const refused = yield* flag(type, id)
        assert.deepStrictEqual(
          [refused.status, refused.json],
          [400, { error: "resourceId: what is in the Inbox is never synchronised" }]
        )
      }
    })
  )

  it.effect("refuse devices that are none of the caller's, and none at all", () =>
    Effect.gen(function* () {
      const { device, directory, flag } = yield* makeTree
      const other = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const own = yield* device("Laptop")
      const foreign = yield* other.device("Theirs")
      for (const [deviceIds, error] of [
        [undefined, "deviceIds: expected at least one of one's own devices"],
        [[], "deviceIds: expected at least one of one's own devices"],
        [[own, foreign], "deviceIds[1]: expected one of one's own devices"],
        [["nonsense"], "deviceIds[0]: expected one of one's own devices"]
      ] as const) {
        const more = { scope: "selected", ...(deviceIds !== undefined && { deviceIds }) }
        const refused = yield* flag("directory", bucket.id, more)
        assert.deepStrictEqual([refused.status, refused.json], [400, { error }])
      }
      for (const more of [{ scope: "some" }, { enabled: "yes" }, { deviceIds: own }, { extra: 1 }])
        assert.strictEqual((yield* flag("directory", bucket.id, more)).status, 400, JSON.stringify(more))
    })
  )

  it.effect("are of what there is, of the caller's own", () =>
    Effect.gen(function* () {
      const { device, directory, file, flag, sql, userId } = yield* makeTree
      const other = yield* makeTree
      const theirs = yield* other.directory(undefined, "Theirs")
      const bucket = yield* directory(undefined, "Work")
      const made = yield* file(bucket, "a.txt")
      const hidden = yield* directory(undefined, yield* device("Laptop"), "device")
      const sent = yield* file(hidden, "sent.txt")
      const trashed = yield* directory(undefined, "Gone")
      yield* sql`UPDATE directories SET trash_id = 'x' WHERE id = ${trashed.id} AND user_id = ${userId}`
      for (const [type, id, error] of [
        ["directory", theirs.id, "Directory not found"],
        ["directory", newId("dir"), "Directory not found"],
        ["directory", trashed.id, "Directory not found"],
        ["directory", hidden.id, "Directory not found"],
        ["directory", made.groupId, "Directory not found"],
        ["file", made.id, "File not found"],
        ["file", sent.groupId, "File not found"],
        ["file", newId("fg"), "File not found"]
      ] as const) {
        const refused = yield* flag(type, id)
        assert.deepStrictEqual([refused.status, refused.json], [404, { error }], `${type} ${id}`)
      }
    })
  )

  it.effect("take the scope full; sessions and devices that are unknown are told apart", () =>
    Effect.gen(function* () {
      const { ask, key } = yield* makeTree
      const { makeKey } = yield* TestServer
      for (const scope of ["read", "write", "read:Work"]) {
        const scoped = yield* makeKey({ scopes: [scope] }, key)
        assert.strictEqual((yield* ask("GET", subscriptions, { key: scoped.key })).status, 403, scope)
      }
      const headers = { "x-device-id": newId("dev") }
      assert.strictEqual((yield* ask("GET", subscriptions, { key, headers })).status, 404)
    })
  )

  it.effect("let go of a device that is deleted", () =>
    Effect.gen(function* () {
      const { ask, device, directory, flagged, key } = yield* makeTree
      const bucket = yield* directory(undefined, "Work")
      const [one, two] = [yield* device("One"), yield* device("Two")]
      yield* flagged("directory", bucket.id, { scope: "selected", deviceIds: [one, two] })
      yield* ask("DELETE", `/api/devices/${one}`, { key })
      const { json } = yield* ask("GET", subscriptions, { key })
      assert.deepStrictEqual(
        (json as { readonly subscriptions: ReadonlyArray<{ readonly deviceIds: unknown }> }).subscriptions[0]
          ?.deviceIds,
        [two]
      )
    })
  )

  it.effect("outlast the trash, and go with what is deleted for good", () =>
    Effect.gen(function* () {
      const { directory, file, flagged, sql, userId } = yield* makeTree
      const [kept, gone] = [yield* directory(undefined, "Kept"), yield* directory(undefined, "Gone")]
      const { groupId } = yield* file(kept, "trashed")
      for (const id of [kept.id, gone.id]) yield* flagged("directory", id)
      yield* flagged("file", groupId)
      yield* sql`UPDATE file_groups SET trash_id = 't' WHERE id = ${groupId}`
      yield* sql`DELETE FROM directories WHERE id = ${gone.id}`
      yield* sweep
      const left = yield* sql<{
        id: string
      }>`SELECT resource_id AS id FROM sync_flags WHERE user_id = ${userId}`
      assert.sameMembers(
        left.map(({ id }) => id),
        [kept.id, groupId]
      )
    })
  )

  it.effect("are 10,000 of a user at most; those that there are can still change", () =>
    Effect.gen(function* () {
      const { directory, flag, flagged, sql, userId } = yield* makeTree
      assert.strictEqual(limits.syncFlagsPerUser, 10_000)
      const bucket = yield* directory(undefined, "Work")
      const other = yield* directory(undefined, "Other")
      yield* flagged("directory", bucket.id)
      yield* sql`INSERT INTO sync_flags (user_id, resource_type, resource_id, enabled, scope, device_ids)
        SELECT ${userId}, 'file', 'fg_' || n, true, 'all', '{}' FROM generate_series(2, 10000) n`
      const refused = yield* flag("directory", other.id)
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [409, { error: "A user has at most 10000 flags of synchronisation" }]
      )
      yield* flagged("directory", bucket.id, { enabled: false })
    })
  )
})
