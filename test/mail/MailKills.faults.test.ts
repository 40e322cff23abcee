import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import type { MailServerOptions } from "./MailServerProcess.ts"
import { LoadedServers, MailSide } from "./MailSides.ts"
import { hurry, withLogin } from "./RelayedServer.ts"
import { startSink } from "./SmtpSink.ts"
import { plain } from "./Stage.ts"

/** `MAIL_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["MAIL_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const note = `SIMULATION_SEED=${seed} MAIL_KILLS=${kills}`

const stores = FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer))

interface Tried {
  readonly address: string
  readonly outcome: string
}

/** A mail that was answered 200, and its recipients. */
interface Sent {
  readonly id: string
  readonly to: ReadonlyArray<string>
}

const recipientsOf = ({ id, to }: Sent) =>
  to.map((address) => ({ id, address, key: `${address} <${id}@example.com>` }))

/** Sends until one of the servers has accepted it; a reply that was lost with its server is no acceptance. */
const send = async (
  sides: ReadonlyArray<MailSide>,
  key: string,
  random: SeededRandom,
  name: string
): Promise<Sent> => {
  const to = Array.from({ length: 1 + random.below(3) }, (_, n) => `r${n}-${name}@example.org`)
  for (;;) {
    const side = sides[random.below(sides.length)]
    const json = { ...plain, to: to.join(","), text: "x".repeat(1 + random.below(20_000)) }
    const answer = await ask({ url: side?.url ?? "", adminKey: () => key }, "POST", "/send", { json }).catch(
      () => undefined
    )
    if (answer?.status === 200) return { id: (answer.body as { readonly message_id: string }).message_id, to }
    if (answer !== undefined) assert.strictEqual(answer.status, 503, `${JSON.stringify(answer.body)} ${note}`)
    await sleep(20)
  }
}

const waitingMax = 300

/** Two servers with clients that send, while one is killed again and again; answers what came of it by the API. */
const underKills = Effect.fnUntraced(function* (
  name: string,
  options: Pick<MailServerOptions, "onUnknown" | "relayPort">,
  arrived: () => number
) {
  const { newAdminKey: key = "" } = yield* FirstBoot
  const { dataDir, databaseUrl } = yield* TestStores
  const random = new SeededRandom(seed)
  const loaded = new LoadedServers()
  const sides = [0, 1].map((n) => {
    const own = { databaseUrl, dataDir: join(dataDir, `${name}${n}`), leaseMillis: 1_500 }
    return new MailSide({ ...options, ...own }, loaded)
  })
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      loaded.end()
      await Promise.all(sides.map((side) => side.kill()))
    })
  )
  yield* Effect.promise(() => Promise.all(sides.map((side) => side.start())))
  const accepted: Array<Sent> = []
  yield* Effect.promise(async () => {
    const over = new AbortController()
    let recipients = 0
    const sender = async (which: number): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        const sent = await send(sides, key, random, `${name}-${which}-${n}`)
        accepted.push(sent)
        recipients += sent.to.length
        while (recipients - arrived() > waitingMax && !over.signal.aborted) await sleep(20)
        await sleep(random.below(120))
      }
    }
    const senders = Promise.all([sender(0), sender(1), sender(2)])
    for (let n = 0; n < kills; n++) {
      await sleep(200 + random.below(500))
      const side = sides[random.below(2)]
      await side?.kill()
      await side?.start()
    }
    over.abort()
    await senders
  })
  const api = { url: sides[0]?.url ?? "", adminKey: () => key }
  const read = (path: string) =>
    Effect.promise(async () => (await ask(api, "GET", `/api/v1/emails${path}`)).body)
  yield* eventually(
    "all have ended",
    Effect.gen(function* () {
      yield* hurry
      const totals = yield* Effect.forEach(["queued", "sending", "deferred"], (status) =>
        read(`?limit=1&status=${status}`)
      )
      return totals.every((body) => (body as { readonly meta: { readonly total: number } }).meta.total === 0)
    })
  )
  const states = new Map<string, string>()
  const unknown = new Set<string>()
  const readBack = Effect.fnUntraced(function* ({ id }: Sent) {
    const { recipients } = (yield* read(`/${id}`)) as {
      readonly recipients: ReadonlyArray<{ readonly address: string; readonly status: string }>
    }
    for (const { address, status } of recipients) states.set(`${address} <${id}@example.com>`, status)
    const { attempts } = (yield* read(`/${id}/attempts`)) as { readonly attempts: ReadonlyArray<Tried> }
    for (const { address, outcome } of attempts)
      if (outcome === "unknown") unknown.add(`${address} <${id}@example.com>`)
  })
  yield* Effect.forEach(accepted, readBack, { concurrency: 8, discard: true })
  return { recipients: accepted.flatMap(recipientsOf), states, unknown, read }
})

/** A relay that takes a moment for each mail, and now and then closes before its reply. */
const startRelay = Effect.gen(function* () {
  const random = new SeededRandom(seed + 1)
  return yield* startSink(
    withLogin({
      end: () =>
        random.chance(0.01) ? "drop" : { reply: "250 2.0.0 taken\r\n", afterMillis: random.below(30) }
    })
  )
})

/** How often each recipient's mail came, by address and Message-ID: copies with another one count for nobody. */
const countsOf = (
  accepted: ReadonlyArray<{ readonly to: ReadonlyArray<string>; readonly message: string }>
) => {
  const counts = new Map<string, number>()
  for (const { message, to } of accepted) {
    assert.strictEqual(to.length, 1, note)
    const key = `${to[0]} ${/^Message-ID: (<.*>)\r$/im.exec(message)?.[1]}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

const told = (what: string, recipients: number, unknown: number, doubled: number) =>
  Effect.logInfo(
    `${what}: ${kills} kills, ${recipients} recipients, ${unknown} unknown, ${doubled} came twice, ${note}`
  )

const patience = { timeout: 300_000 + kills * 60_000 }

layer(stores, { excludeTestServices: true })("mail of two servers", (it) => {
  it.effect(
    `comes to all, and twice only where an attempt is unknown, while either is killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const relay = yield* startRelay
        const options = { relayPort: relay.port, onUnknown: "resend" } as const
        const { recipients, states, unknown } = yield* underKills(
          "resend",
          options,
          () => relay.accepted.length
        )
        const counts = countsOf(relay.accepted)
        for (const { key } of recipients) {
          assert.strictEqual(states.get(key), "sent", `${key} ${note}`)
          assert.isAtLeast(counts.get(key) ?? 0, 1, `${key} is missing ${note}`)
          if ((counts.get(key) ?? 0) > 1) assert.isTrue(unknown.has(key), `${key} came twice ${note}`)
        }
        assert.isAbove(recipients.length, 10 * kills, note)
        assert.isAbove(unknown.size, 0, note)
        const doubled = recipients.filter(({ key }) => (counts.get(key) ?? 0) > 1).length
        yield* told("resend", recipients.length, unknown.size, doubled)
      }).pipe(Effect.scoped),
    patience
  )

  it.effect(
    `comes to nobody twice where it is held, and what is missing is unknown, while either is killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const relay = yield* startRelay
        const options = { relayPort: relay.port, onUnknown: "hold" } as const
        const { recipients, states, unknown } = yield* underKills(
          "hold",
          options,
          () => relay.accepted.length
        )
        const counts = countsOf(relay.accepted)
        for (const { key } of recipients) {
          assert.strictEqual(states.get(key), unknown.has(key) ? "unknown" : "sent", `${key} ${note}`)
          assert.isAtMost(counts.get(key) ?? 0, 1, `${key} came twice ${note}`)
          if (!counts.has(key)) assert.isTrue(unknown.has(key), `${key} is missing ${note}`)
        }
        assert.isAbove(unknown.size, 0, note)
        yield* told("hold", recipients.length, unknown.size, 0)
      }).pipe(Effect.scoped),
    patience
  )

  it.effect(
    `is in the sandbox's inbox exactly once, while either is killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const options = { relayPort: null, onUnknown: "resend" } as const
        const { read, recipients, states, unknown } = yield* underKills("sandbox", options, () => Infinity)
        const counts = new Map<string, number>()
        for (let offset = 0; offset < recipients.length + 100; offset += 100) {
          const { emails } = (yield* read(`/inbox?limit=100&offset=${offset}`)) as {
            readonly emails: ReadonlyArray<{ readonly address: string; readonly email_id: string }>
          }
          for (const { address, email_id } of emails) {
            const key = `${address} <${email_id}@example.com>`
            counts.set(key, (counts.get(key) ?? 0) + 1)
          }
        }
        for (const { key } of recipients) {
          assert.strictEqual(states.get(key), "sent", `${key} ${note}`)
          assert.strictEqual(counts.get(key), 1, `${key} ${note}`)
        }
        assert.strictEqual(unknown.size, 0, note)
        yield* told("sandbox", recipients.length, 0, 0)
      }).pipe(Effect.scoped),
    patience
  )
})
