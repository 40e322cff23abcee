import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { networkInterfaces } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { EgressSystem } from "#src/infra/egress/Egress.ts"
import { EgressAllow } from "#src/infra/egress/EgressAllow.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { TestNames } from "#test/infra/egress/EgressStage.ts"
import { DnsServer } from "../DnsServer.ts"
import { type Sink as SinkService, startSink } from "../SmtpSink.ts"
import { hurry } from "../RelayedServer.ts"
import { live, makeStageOf } from "../Stage.ts"

/** Mails to others in a run by hand that tells how long they take, beside a dead domain and without one, in turns. */
const measured = Number(process.env["MAIL_MEASURED"] ?? 0)
const turns = 4

const dead = 1_000
const recipientsMax = 50

class Sink extends Context.Service<Sink, SinkService>()("signalbox/test/Sink") {
  static readonly layer = Layer.effect(Sink, startSink())
}

/** A server that takes connections and never says a word: the slowest way to be dead. */
class Silent extends Context.Service<Silent, { readonly most: () => number; readonly all: () => number }>()(
  "signalbox/test/Silent"
) {
  static readonly layer = Layer.effect(
    Silent,
    Effect.flatMap(Sink, ({ port }) =>
      Effect.acquireRelease(
        Effect.promise(async () => {
          const open = new Set<Socket>()
          let most = 0
          let all = 0
          const server = createServer((socket) => {
            all++
            open.add(socket)
            most = Math.max(most, open.size)
            socket.on("error", () => socket.destroy()).on("close", () => open.delete(socket))
          })
          await once(server.listen(port, "127.0.0.9"), "listening")
          const close = () => {
            server.close()
            for (const socket of open) socket.destroy()
          }
          return { most: () => most, all: () => all, close }
        }),
        ({ close }) => Effect.sync(close)
      )
    )
  )
}

/** Each turn has a domain that nothing is known of. */
const deadDomain = (turn: number): string => `dead${turn}.test`

const names = new TestNames({ "mx.up.test": [["127.0.0.1"]], "mx.dead.test": [["127.0.0.9"]] })

const direct = Layer.unwrap(
  Effect.gen(function* () {
    const { port } = yield* Sink
    const { address, mx } = yield* DnsServer
    mx("up.test", [10, "mx.up.test"])
    for (let turn = 0; turn <= turns; turn++) mx(deadDomain(turn), [10, "mx.dead.test"])
    return TestServer.own({
      egressAllow: EgressAllow.parse("127.0.0.0/8") ?? EgressAllow.nothing,
      mailDirect: { hostname: "client.test", port },
      mailDomains: {
        spf: [],
        bounceDomain: undefined,
        hostname: undefined,
        fromDomains: new Set(["*"]),
        nameServers: [address]
      },
      limits: { mailRatePerMinute: 1_000_000 }
    })
  })
).pipe(
  Layer.provide(Layer.succeed(EgressSystem, { interfaces: networkInterfaces, dns: names.dns })),
  Layer.provideMerge(Silent.layer),
  Layer.provideMerge(Layer.mergeAll(Sink.layer, DnsServer.layer))
)

type Stage = Effect.Success<ReturnType<typeof makeStageOf>>

const toDead = ({ sent }: Stage, turn: number) =>
  Effect.forEach(
    Array.from({ length: dead / recipientsMax }, (_, mail) => mail),
    (mail) => {
      const to = Array.from({ length: recipientsMax }, (_, n) => `r${n}-${mail}@${deadDomain(turn)}`)
      return sent({ to: to.join(",") })
    },
    { concurrency: 4 }
  )

/** Milliseconds from acceptance to the reply of each of an owner's mails to others. */
const took = (userId: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql<{ millis: number }>`SELECT (extract(epoch FROM d.ended_at - m.created_at) * 1000)::float8 AS millis
        FROM mail_deliveries d JOIN mail_messages m ON m.id = d.message_id
        WHERE d.user_id = ${userId} AND d.status = 'sent'`,
      (rows) => rows.map(({ millis }) => millis)
    )
  )

/** Sends one after the other, as people do. */
const measure = Effect.gen(function* () {
  const stage = yield* makeStageOf("admin")
  for (let n = 0; n < measured; n++) {
    yield* stage.sent({ to: `r${n}@up.test` })
    yield* Effect.sleep(20)
  }
  yield* eventually(
    "all have gone",
    Effect.map(stage.get("?status=sent&limit=1"), ({ json }) => {
      const { meta } = json as { readonly meta: { readonly total: number } }
      return meta.total === measured
    })
  )
  return yield* took(stage.userId)
})

const percentiles = (millis: ReadonlyArray<number>): string => {
  const sorted = millis.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(share * sorted.length)]?.toFixed(1) ?? ""
  return `p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)} ms`
}

/** The mails to a dead domain are canceled, so that the next turn begins without them. */
const measureInTurns = Effect.gen(function* () {
  const { ask } = yield* TestServer
  const [without, beside]: [Array<number>, Array<number>] = [[], []]
  yield* measure
  for (let turn = 1; turn <= turns; turn++) {
    const alone = yield* measure
    const campaign = yield* makeStageOf("admin")
    const mails = yield* toDead(campaign, turn)
    const next = yield* measure
    process.stdout.write(`${percentiles(alone)}; beside ${dead} to a dead domain ${percentiles(next)}\n`)
    without.push(...alone)
    beside.push(...next)
    for (const id of mails) yield* ask("POST", `/api/v1/emails/${id}/cancel`, { key: campaign.key })
    const sql = yield* SqlClient
    yield* eventually(
      "none but those that hang are left",
      Effect.andThen(
        hurry,
        Effect.map(sql`SELECT FROM jobs WHERE queue = 'mail'`, ({ length }) => length <= 2 * turn)
      )
    )
  }
  process.stdout.write(`all: ${percentiles(without)}; beside them ${percentiles(beside)}\n`)
})

layer(direct, live)(`${dead} mails to a domain that is dead`, (it) => {
  it.effect(
    "hang at two connections, and mails to others, of the same owner too, go meanwhile",
    () =>
      Effect.gen(function* () {
        const sink = yield* Sink
        const silent = yield* Silent
        const [campaign, other] = [yield* makeStageOf("admin"), yield* makeStageOf("admin")]
        if (measured > 0) yield* measureInTurns
        const hung = silent.all()
        const mails = yield* toDead(campaign, 0)
        yield* eventually(
          "two hang",
          Effect.sync(() => silent.all() >= hung + 2)
        )
        // Further ones have their turn from the beginning: they do not all come due at once, to be refused.
        const [late = ""] = yield* toDead(campaign, 0)
        const sql = yield* SqlClient
        const begins = yield* sql<{ isLater: boolean }>`SELECT not_before > offered_at AS "isLater" FROM jobs
          WHERE queue = 'mail' AND payload ->> 'message' = ${late}`
        assert.strictEqual(begins.filter(({ isLater }) => isLater).length, recipientsMax)
        const before = sink.accepted.length
        for (let n = 0; n < 10; n++)
          for (const stage of [campaign, other]) {
            const id = yield* stage.sent({ to: `r${n}@up.test` })
            assert.strictEqual((yield* stage.read(id, 30)).recipients[0]?.status, "sent", `${n}`)
          }
        assert.strictEqual(sink.accepted.length, before + 20)
        if (measured === 0) assert.isAtMost(silent.most(), 2)
        for (const id of mails)
          for (const { attempts, status } of (yield* campaign.read(id)).recipients)
            assert.deepStrictEqual([status, attempts], ["queued", 0])
      }),
    600_000
  )
})
