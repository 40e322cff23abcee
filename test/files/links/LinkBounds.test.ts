import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SharedLink } from "#schemas/files/ShareLink.ts"
import { LinkUses } from "#src/files/links/LinkUses.ts"
import { RawClient } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { wireTo } from "#test/harness/ServerStores.ts"
import type { TcpProxy } from "#test/harness/TcpProxy.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { live } from "../transfers/TransferSteps.ts"
import { bodyOf, direct, shared, usesOf } from "./LinkSteps.ts"

const downloadsOf = (key: string, token: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", `/api/share-links/${token}`, { key }), ({ json }) => (json as SharedLink).downloads)
  )

/** More than the sockets of a connection hold. */
const longBytes = 16 * 1024 * 1024

/** A client that has begun to read a link's bytes, and takes none until its socket goes on. */
const stalled = (token: string) =>
  Effect.gen(function* () {
    const { port } = yield* TestServer
    const client = yield* Effect.acquireRelease(
      Effect.promise(() => RawClient.open(port)),
      (opened) => Effect.sync(() => opened.destroy())
    )
    yield* Effect.promise(() => client.send(`GET /direct/${token} HTTP/1.1\r\nHost: a\r\n\r\n`))
    yield* Effect.promise(() => client.untilBytes(1))
    client.socket.pause()
    return client
  })

layer(TestServer.own(), live)("share links", (it) => {
  it.effect("have the last 100 downloads, the newest first, and keep no row of the others for ever", () =>
    Effect.gen(function* () {
      const { makeUser, stopClockAt } = yield* TestServer
      const sql = yield* SqlClient
      const { key } = yield* makeUser()
      const { link } = yield* shared(key)
      const start = Date.now()
      for (let n = 1; n <= 101; n++) {
        stopClockAt(start + n)
        assert.strictEqual(
          (yield* direct(link.token, { headers: { "user-agent": `program ${n}` } })).status,
          200
        )
      }
      const listed = yield* downloadsOf(key, link.token)
      assert.deepStrictEqual(
        listed.map(({ agent }) => agent),
        Array.from({ length: 100 }, (_, n) => `program ${101 - n}`)
      )
      assert.strictEqual(yield* usesOf(key, link.token), 101)
      // They are over an hour later, and go with the next hundredth.
      stopClockAt(start + 3_700_000)
      for (let n = 102; n <= 200; n++) yield* direct(link.token)
      const [row] = yield* sql<{ n: number }>`SELECT count(*)::int AS n FROM share_uses`
      assert.strictEqual(row?.n, 100)
      assert.strictEqual(yield* usesOf(key, link.token), 200)
      stopClockAt(undefined)
    })
  )

  it.effect("are 404 at once when their owner is deleted, and what is under way ends", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { id, key } = yield* makeUser()
      const { link } = yield* shared(key, {}, new Uint8Array(longBytes))
      const client = yield* stalled(link.token)
      assert.strictEqual((yield* ask("DELETE", `/api/v1/admin/users/${id}`)).status, 200)
      const gone = yield* direct(link.token)
      assert.strictEqual(gone.status, 404)
      assert.include(bodyOf(gone), "Link not found")
      // The bytes in the sockets still come.
      yield* Effect.sleep(1_000)
      client.socket.resume()
      yield* Effect.promise(() => client.closed())
      assert.isBelow(client.receivedBytes, longBytes)
    }).pipe(Effect.scoped)
  )

  it.effect("are revoked beside a use that is given back, whichever comes first", () =>
    Effect.gen(function* () {
      const { makeUser } = yield* TestServer
      const sql = yield* SqlClient
      const uses = yield* LinkUses
      const { key } = yield* makeUser()
      const { link } = yield* shared(key, { singleUse: true })
      const found = (yield* uses.find(link.token)) ?? assert.fail("no link")
      const of = { versionId: null, sizeBytes: 9, bytes: 9 }
      const hold =
        (yield* uses.begin(found, { address: "192.0.2.1", agent: "" }, of)) ?? assert.fail("no use is left")
      const waits = sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      const [locked, isWaiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const revoking = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SELECT FROM share_links WHERE token_hash = ${found.hash} FOR UPDATE`
            yield* Deferred.succeed(locked, undefined)
            yield* Deferred.await(isWaiting)
            // Its uses go with it.
            yield* sql`DELETE FROM share_links WHERE token_hash = ${found.hash}`
          })
        )
      )
      yield* Deferred.await(locked)
      const ending = yield* Effect.forkChild(uses.end(hold, { sentBytes: 0, isWhole: false, isLast: false }))
      yield* eventually(
        "the use waits for the link",
        Effect.map(waits, ({ length }) => length > 0)
      )
      yield* Deferred.succeed(isWaiting, undefined)
      yield* Fiber.join(revoking)
      yield* Fiber.join(ending)
      assert.strictEqual((yield* direct(link.token)).status, 404)
    }).pipe(Effect.provide(LinkUses.layer))
  )

  it.effect("take a password of other letters in the query: a header has ASCII alone", () =>
    Effect.gen(function* () {
      const { makeUser, port } = yield* TestServer
      const { key } = yield* makeUser()
      const password = "Schlüssel"
      const { link } = yield* shared(key, { password })
      const client = yield* Effect.acquireRelease(
        Effect.promise(() => RawClient.open(port)),
        (opened) => Effect.sync(() => opened.destroy())
      )
      const head = `GET /direct/${link.token} HTTP/1.1\r\nHost: a\r\nX-Share-Password: ${password}\r\n\r\n`
      yield* Effect.promise(() => client.send(Buffer.from(head, "latin1")))
      const refused = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.include(refused, "401")
      assert.include(refused, "Wrong password")
      const query = `password=${encodeURIComponent(password)}`
      assert.strictEqual((yield* direct(link.token, { query })).status, 200)
    }).pipe(Effect.scoped)
  )
})

layer(TestServer.own({ limits: { passwordsAtOnce: 1, passwordsWaiting: 2 } }), live)(
  "passwords of links",
  (it) => {
    it.effect("are checked one after the other, and 503 above so many that wait", () =>
      Effect.gen(function* () {
        const { makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const { link } = yield* shared(key, { password: "right" })
        const right = direct(link.token, { query: "password=right" })
        const answers = yield* Effect.all(
          Array.from({ length: 12 }, () => right),
          { concurrency: "unbounded" }
        )
        const statuses = answers.map(({ status }) => status)
        assert.isAtLeast(statuses.filter((status) => status === 200).length, 2)
        const refused = answers.filter(({ status }) => status !== 200)
        assert.isNotEmpty(refused)
        for (const { headers, json, status } of refused) {
          assert.strictEqual(status, 503)
          assert.deepStrictEqual(json, { error: "Too many passwords are being checked; try again" })
          assert.match(headers.get("retry-after") ?? "", /^\d+$/)
        }
        assert.strictEqual((yield* right).status, 200)
      })
    )
  }
)

let wire: TcpProxy | undefined
const wired = async (databaseUrl: string): Promise<string> => {
  const made = await wireTo(databaseUrl, 5432)
  wire = made.wire
  return made.url
}

layer(TestServer.own({}, { wire: wired }), live)(
  "a download whose end Postgres does not hear at once",
  (it) => {
    it.effect("is written down when it is back", () =>
      Effect.gen(function* () {
        const { makeUser } = yield* TestServer
        const { key } = yield* makeUser()
        const { link } = yield* shared(key, {}, new Uint8Array(longBytes))
        const client = yield* stalled(link.token)
        wire?.breakWire("refuse")
        client.socket.resume()
        yield* Effect.promise(() => client.untilBytes(longBytes))
        // The first attempts fail.
        yield* Effect.sleep(1_000)
        wire?.mend()
        yield* eventually(
          "the download is told of as complete",
          Effect.map(
            downloadsOf(key, link.token),
            ([one]) => one?.complete === true && one.bytes === longBytes
          )
        )
      }).pipe(Effect.scoped)
    )
  }
)
