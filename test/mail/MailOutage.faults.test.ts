import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { type Answer, TestServer, textOf } from "#test/harness/TestServer.ts"
import { blobFiles, uploadFiles } from "#test/infra/blobs/StoredBlobs.ts"
import { hurry, Relay, relayedServer, withLogin } from "./RelayedServer.ts"
import { live, makeStage, makeStageOf } from "./Stage.ts"

interface Listed {
  readonly meta: { readonly total: number }
}

const assertAway = ({ headers, json, status }: Answer): void => {
  assert.strictEqual(status, 503, JSON.stringify(json))
  assert.isAtLeast(Number(headers.get("retry-after")), 1)
}

const wires = postgresWire()

layer(relayedServer({ limits: { mailSendMillis: 3_000 } }, { wire: wires.wire }), live)(
  "while Postgres is away",
  (it) => {
    for (const way of ["refuse", "stall"] as const)
      it.effect(`(connections ${way}) a mail is 503, is not accepted, and goes when it is back`, () =>
        Effect.gen(function* () {
          const { ask } = yield* TestServer
          const { get, key, post, sent } = yield* makeStageOf("admin")
          // The key is known to the server, as a caller's is.
          const id = yield* sent()
          const json = { name: `${way}.example` }
          const domain = textOf(yield* ask("POST", "/api/v1/emails/domains", { key, json }), "id")
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* wires.cut(way)
              const path = "/api/v1/emails"
              const answers = yield* Effect.all(
                [
                  post({}),
                  post({ to: "bob@example.org" }),
                  post({}, { "Idempotency-Key": "order-1" }),
                  get(""),
                  get(`/${id}`),
                  get("/suppressions"),
                  ask("POST", `${path}/${id}/cancel`, { key }),
                  ask("DELETE", `${path}/inbox`, { key }),
                  ask("POST", `${path}/suppressions`, { key, json: { address: "eve@example.org" } }),
                  ask("POST", `${path}/domains`, { key, json: { name: "other.example" } }),
                  ask("POST", `${path}/domains/${domain}/rotate`, { key })
                ],
                { concurrency: "unbounded" }
              )
              answers.forEach(assertAway)
            })
          )
          let accepted = 1
          yield* eventually(
            "a mail is accepted again",
            Effect.map(post({}, { "Idempotency-Key": "order-1" }), ({ status }) => {
              if (status === 200) accepted++
              return status === 200
            })
          )
          yield* eventually(
            "both have gone",
            Effect.andThen(
              hurry,
              Effect.map(get("?status=sent"), ({ json }) => (json as Listed).meta.total === accepted)
            )
          )
          assert.strictEqual(((yield* get("")).json as Listed).meta.total, accepted)
        })
      )

    it.effect("whose answer to a send is lost has one mail of it, however often it is sent again", () =>
      Effect.gen(function* () {
        const { get, post } = yield* makeStageOf("admin")
        const headers = { "Idempotency-Key": "order-2" }
        yield* post({})
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* wires.cut("mute")
            assertAway(yield* post({}, headers))
          })
        )
        wires.breakWire("refuse")
        wires.mend()
        let id = ""
        yield* eventually(
          "it is accepted",
          Effect.map(post({}, headers), (answer) => {
            if (answer.status === 200) id = textOf(answer, "message_id")
            return answer.status === 200
          })
        )
        assert.strictEqual(textOf(yield* post({}, headers), "message_id"), id)
        assert.strictEqual(((yield* get("")).json as Listed).meta.total, 2)
      })
    )

    it.effect(
      "mail that a relay is taking is not lost, and comes twice only where an attempt is unknown",
      () =>
        Effect.gen(function* () {
          const relay = yield* Relay
          relay.play(withLogin({ end: { reply: "250 2.0.0 taken\r\n", afterMillis: 500 } }))
          const { get, read, sent } = yield* makeStageOf("admin")
          const to = Array.from({ length: 30 }, (_, n) => `r${n}@example.org`)
          const before = relay.accepted.length
          const id = yield* sent({ to: to.join(",") })
          yield* eventually(
            "some are being taken",
            Effect.sync(() => relay.accepted.length >= before + 5)
          )
          yield* Effect.scoped(Effect.andThen(wires.cut("refuse"), Effect.sleep(2_000)))
          yield* eventually(
            "all are sent",
            Effect.andThen(
              hurry,
              Effect.map(read(id), ({ recipients }) => recipients.every(({ status }) => status === "sent"))
            )
          )
          const { attempts } = (yield* get(`/${id}/attempts`)).json as {
            readonly attempts: ReadonlyArray<{ readonly address: string; readonly outcome: string }>
          }
          for (const address of to) {
            const copies = relay.accepted.slice(before).filter((one) => one.to.includes(address)).length
            const unknown = attempts.filter((one) => one.address === address && one.outcome === "unknown")
            assert.isAtLeast(copies, 1, address)
            assert.isAtMost(copies, 1 + unknown.length, address)
          }
        })
    )
  }
)

layer(TestServer.own(), live)("a server whose clock is set back by a day", (it) => {
  it.effect("sends mail at once, schedules by its clock, and repeats what was accepted before", () =>
    Effect.gen(function* () {
      const { stopClockAt } = yield* TestServer
      const { get, post, read, sent } = yield* makeStage
      const headers = { "Idempotency-Key": "order-1" }
      const first = textOf(yield* post({}, headers), "message_id")
      const back = Date.now() - 86_400_000
      stopClockAt(back)
      assert.strictEqual(textOf(yield* post({}, headers), "message_id"), first)
      const id = yield* sent({})
      assert.strictEqual((yield* read(id, 30)).recipients[0]?.status, "sent")
      const raw = Buffer.from((yield* get(`/${id}/raw`)).bytes).toString("latin1")
      const date = Date.parse(/^Date: (.*)\r$/im.exec(raw)?.[1] ?? "")
      assert.strictEqual(date, Math.floor(back / 1_000) * 1_000)
      const late = yield* sent({ to: "defer@example.org" })
      const [recipient] = (yield* read(late, 30)).recipients
      assert.deepStrictEqual([recipient?.status, recipient?.attempts], ["deferred", 1])
      stopClockAt(undefined)
      const after = yield* sent({})
      assert.strictEqual((yield* read(after, 30)).recipients[0]?.status, "sent")
    })
  )
})

const mib = 1024 * 1024

describeWith(smallDisk, "blobs on a disk of 16 MiB", () => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-"))
  const disk = new SmallDisk(join(home, "blobs"), 16)
  afterAll(() => {
    disk.remove()
    rmSync(home, { recursive: true })
  })
  const settings = { blobsDirectory: disk.directory, filesMinFreeBytes: mib }

  layer(TestServer.own(settings), live)("that is full", (it) => {
    it.effect("refuse a long mail with 507, keep nothing of it, and take it when there is room", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { get, post, read } = yield* makeStage
        const content = Buffer.alloc(mib, "0123456789").toString("base64")
        const long = { attachments: [{ filename: "a.bin", content }] }
        const kept = () => [blobFiles(disk.directory).length, uploadFiles(disk.directory).length]
        const before = kept()
        yield* Effect.promise(() => disk.fill(mib))
        const headers = { "Idempotency-Key": "order-1" }
        const refused = yield* post(long, headers)
        assert.deepStrictEqual(
          [refused.status, (refused.json as { readonly error?: string }).error],
          [507, "The disk is full; nothing was sent"]
        )
        assert.deepStrictEqual(kept(), before)
        assert.strictEqual(((yield* get("")).json as Listed).meta.total, 0)
        assert.deepStrictEqual(yield* sql`SELECT FROM jobs WHERE queue = 'mail'`, [])
        // A short one needs no blob.
        assert.strictEqual((yield* post({})).status, 200)
        yield* Effect.promise(() => disk.free())
        const id = textOf(yield* post(long, headers), "message_id")
        assert.strictEqual((yield* read(id, 30)).recipients[0]?.status, "sent")
        assert.strictEqual(((yield* get("")).json as Listed).meta.total, 2)
      })
    )
  })
})
