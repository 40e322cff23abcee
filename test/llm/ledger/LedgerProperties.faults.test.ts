import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { type CrashableSide, crashableSide } from "./CrashableSide.ts"
import { LedgerModel, type PaperHold } from "./LedgerModel.ts"
import { askOf, makeKey, makeUser, recordOf, setLedgerClock, subscribe, topUp } from "./LedgerProbe.ts"

const stores = LedgerCheck.layer.pipe(Layer.provideMerge(TestStores.layer))

const hourMillis = 3_600_000
const perToken = 1_000n
const promptTokens = 10
const windows = ["day", "hour", "week"] as const

/** A call under way: its grant by the ledger, and its hold on paper. */
interface Call {
  readonly admission: Admission
  readonly ask: AdmissionAsk
  readonly paper: PaperHold
  readonly by: CrashableSide
  tokens: number
}

/** The wall clock and the monotonic one, put forward together with the ledger's. */
const movableClock = Effect.map(Clock.Clock, (real) => {
  let movedMillis = 0
  const millis = (): number => real.currentTimeMillisUnsafe() + movedMillis
  const clock: Clock.Clock = Object.assign(Object.create(real), {
    currentTimeMillis: Effect.sync(millis),
    currentTimeMillisUnsafe: millis,
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe() + BigInt(movedMillis) * 1_000_000n
  })
  return {
    clock,
    millis,
    move: (byMillis: number): void => {
      movedMillis += byMillis
    }
  }
})

class Simulation {
  readonly calls: Array<Call> = []
  readonly model = new LedgerModel()
  subscription = ""
  private readonly random: SeededRandom
  private readonly sides: ReadonlyArray<CrashableSide>
  private readonly keys: ReadonlyArray<string>
  private readonly user: string
  private readonly time: Effect.Success<typeof movableClock>

  constructor(
    random: SeededRandom,
    sides: ReadonlyArray<CrashableSide>,
    user: string,
    keys: ReadonlyArray<string>,
    time: Effect.Success<typeof movableClock>
  ) {
    this.random = random
    this.sides = sides
    this.user = user
    this.keys = keys
    this.time = time
    this.model.caps.set(this.credits, 0n)
  }

  get credits(): string {
    return `credits:${this.user}`
  }

  /** With the window that it has now: another one is another limit. */
  private allowance(window: (typeof windows)[number]): string {
    return `allowance:${this.subscription}:${window} ${this.windowStart(window)}`
  }

  private windowStart(window: (typeof windows)[number]): number {
    const now = this.time.millis()
    const dayMillis = 24 * hourMillis
    if (window === "hour") return now - (now % hourMillis)
    if (window === "day") return now - (now % dayMillis)
    // 5 January 1970 was a Monday.
    return now - ((now - 4 * dayMillis) % (7 * dayMillis))
  }

  private readonly pick = <A>(from: ReadonlyArray<A>): A => from[this.random.below(from.length)] as A

  readonly step = Effect.suspend((): Effect.Effect<void, unknown, SqlClient> => {
    const dice = this.random.below(100)
    if (dice < 35) return this.admit
    if (dice < 60) return this.calls.length === 0 ? this.admit : this.settle
    if (dice < 68) return this.calls.length === 0 ? this.admit : this.release
    if (dice < 78) return this.calls.length === 0 ? this.admit : this.extend
    if (dice < 86) return this.addCredits
    if (dice < 92) return this.setCap
    if (dice < 96) return this.nextHour
    return this.crash
  })

  private choices(keyId: string) {
    const cap = `key:${keyId}`
    return {
      allowances: windows.map((window) => this.allowance(window)),
      money: this.model.caps.get(cap) === undefined ? [this.credits] : [this.credits, cap]
    }
  }

  /** Output tokens that the limits leave; undefined: fewer than make sense. */
  private affordable(
    ask: AdmissionAsk,
    limits: ReadonlyArray<string>,
    isCovered: boolean
  ): number | undefined {
    const left = this.model.available(limits)
    const most =
      left === undefined
        ? ask.outputTokens
        : Number(isCovered ? left - BigInt(promptTokens) : left / perToken)
    const tokens = Math.min(ask.outputTokens, most)
    return tokens >= ask.outputTokensMin ? tokens : undefined
  }

  private readonly admit = Effect.gen({ self: this }, function* () {
    const keyId = this.pick(this.keys)
    const by = this.pick(this.sides)
    const outputTokens = 1 + this.random.below(200)
    const ask = askOf(this.user, keyId, perToken, {
      promptTokens,
      outputTokens,
      outputTokensMin: 1 + this.random.below(outputTokens)
    })
    const { allowances, money } = this.choices(keyId)
    const covered = this.affordable(ask, allowances, true)
    const paid = this.affordable(ask, money, false)
    const isQuiet = !this.model.hasHolds([...allowances, ...money])
    // An amount drawn and not booked yet looks like a hold to the other side.
    if (isQuiet) yield* Effect.forEach(this.sides, (each) => each.side().ledger.flush)
    const { ledger } = by.side()
    const now = ledger.admitNow(ask)
    const result = now === undefined ? yield* Effect.result(ledger.admit(ask)) : Result.succeed(now)
    if (Result.isFailure(result)) {
      assert.notStrictEqual(result.failure._tag, "LedgerAway")
      // Without holds there is nothing to be wrong about.
      if (isQuiet) assert.deepStrictEqual([covered, paid], [undefined, undefined])
      if (isQuiet && result.failure._tag !== "LedgerAway") assert.isFalse(result.failure.busy)
      return
    }
    const admission = result.success
    const tokens = admission.outputTokens
    const most = admission.covered ? covered : paid
    assert.isDefined(most, "admitted without cover")
    assert.isAtMost(tokens, most)
    assert.isAtLeast(tokens, ask.outputTokensMin)
    assert.strictEqual(admission.clamped, tokens < outputTokens)
    if (isQuiet) assert.deepStrictEqual([admission.covered, tokens], [covered !== undefined, covered ?? paid])
    const limits = admission.covered ? allowances : money
    const paper = this.model.hold(limits, this.amountOf(admission.covered, tokens))
    this.calls.push({ admission, ask, paper, by, tokens })
  })

  private amountOf(isCovered: boolean, tokens: number): bigint {
    return isCovered ? BigInt(promptTokens + tokens) : perToken * BigInt(tokens)
  }

  /** Of a call that began in this hour: its hold in another one is not told apart on paper. */
  private readonly extend = Effect.gen({ self: this }, function* () {
    const call = this.pick(this.calls)
    const { admission, paper } = call
    if (admission.covered && !paper.limits.includes(this.allowance("hour"))) return
    const left = this.model.available(paper.limits)
    const wanted = call.tokens + 1 + this.random.below(100)
    const tokens = yield* Effect.promise(() => admission.extend(wanted))
    assert.isAtLeast(tokens, call.tokens)
    assert.isAtMost(tokens, wanted)
    const more = this.amountOf(admission.covered, tokens) - paper.amount
    assert.isTrue(left === undefined || more <= (left > 0n ? left : 0n), "extended without cover")
    paper.amount += more
    call.tokens = tokens
  })

  private taken(): Call {
    const [call] = this.calls.splice(this.random.below(this.calls.length), 1)
    if (call === undefined) throw new Error("no call is under way")
    return call
  }

  private readonly settle = Effect.sync(() => {
    const { admission, ask, by, paper, tokens } = this.taken()
    const left = this.model.available(paper.limits) ?? 0n
    const used = this.random.below(Math.ceil(tokens * 1.3) + 1)
    const actual = this.amountOf(admission.covered, used)
    const cost = perToken * BigInt(used)
    const settlement = admission.settle({ cost, tokens: promptTokens + used })
    const drawn = BigInt(settlement.draws[0]?.amount ?? 0)
    const least = actual < paper.amount ? actual : paper.amount
    assert.isTrue(drawn >= least && drawn <= actual, "not what is held, or more than it cost")
    assert.isTrue(drawn <= paper.amount + (left > 0n ? left : 0n), "more than there was")
    if (!admission.covered) assert.strictEqual(BigInt(settlement.charge) + BigInt(settlement.loss), cost)
    this.model.end(paper)
    for (const limit of paper.limits) this.model.settle(limit, drawn)
    const cap = `key:${ask.keyId}`
    if (!admission.covered && !paper.limits.includes(cap)) this.model.settle(cap, drawn)
    by.side().calls.append(recordOf(this.user, ask.keyId, settlement))
  })

  private readonly release = Effect.sync(() => {
    const { admission, paper } = this.taken()
    admission.release()
    this.model.end(paper)
  })

  readonly addCredits = Effect.suspend(() => {
    const amount = BigInt(1 + this.random.below(400)) * perToken
    this.model.caps.set(this.credits, (this.model.caps.get(this.credits) ?? 0n) + amount)
    return topUp(this.user, amount)
  })

  /** Raised, set below what is spent, lifted. Of a key without calls under way, so that paper and ledger agree on it. */
  private readonly setCap = Effect.gen({ self: this }, function* () {
    const keyId = this.pick(this.keys)
    if (this.calls.some(({ ask }) => ask.keyId === keyId)) return
    const sql = yield* SqlClient
    const tokens = this.random.chance(0.3) ? undefined : this.random.below(1_000)
    const cap = tokens === undefined ? undefined : perToken * BigInt(tokens)
    const usd = cap === undefined ? null : Number(cap) / 1e12
    yield* sql`UPDATE keys SET spend_limit_usd = ${usd}::float8::numeric WHERE id = ${keyId}`
    this.model.caps.set(`key:${keyId}`, cap)
    yield* Effect.forEach(this.sides, (each) => each.side().refresh)
  })

  readonly nextHour = Effect.suspend(() => {
    this.time.move(hourMillis)
    for (const window of windows)
      this.model.caps.set(this.allowance(window), window === "hour" ? 300n : 1_500n)
    return setLedgerClock(new Date(this.time.millis()))
  })

  /** Its calls are gone, and were not charged. */
  private readonly crash = Effect.suspend(() => {
    const by = this.pick(this.sides)
    for (const call of this.calls.filter((one) => one.by === by)) {
      this.model.end(call.paper)
      this.calls.splice(this.calls.indexOf(call), 1)
    }
    return by.crash
  })

  /** In the end everything is booked as on paper, and nothing is leased. */
  readonly finish = Effect.gen({ self: this }, function* () {
    const sql = yield* SqlClient
    for (const { admission } of this.calls.splice(0)) admission.release()
    yield* Effect.forEach(this.sides, ({ stop }) => stop)
    const ids = [this.credits, ...this.keys.map((key) => `key:${key}`)]
    const rows = yield* sql<{ id: string; start: string; settled: string; leased: string }>`
      SELECT id, round(extract(epoch FROM window_start) * 1000)::text AS start, settled::text, leased::text
      FROM limits WHERE id = ANY(${ids}::text[]) OR id LIKE ${`allowance:${this.subscription}:%`}`
    for (const { id, leased, settled, start } of rows) {
      const limit = start === "0" ? id : `${id} ${start}`
      assert.deepStrictEqual([settled, leased], [String(this.model.settledOf(limit)), "0"], limit)
    }
    const { differences } = yield* Effect.flatMap(LedgerCheck, ({ verify }) => verify)
    assert.deepStrictEqual(differences, [])
  })
}

const steps = Number(process.env["SIMULATION_STEPS"] ?? 120)

const simulate = (random: SeededRandom) =>
  Effect.gen(function* () {
    const { databaseUrl } = yield* TestStores
    const time = yield* movableClock
    const sides = [
      yield* crashableSide(databaseUrl, time.clock),
      yield* crashableSide(databaseUrl, time.clock)
    ]
    const user = yield* makeUser
    const keys = [yield* makeKey(user), yield* makeKey(user)]
    const simulation = new Simulation(random, sides, user, keys, time)
    simulation.subscription = yield* subscribe(user, { hour: 300, day: 1_500, week: 1_500 })
    yield* simulation.nextHour
    yield* simulation.addCredits
    yield* Effect.forEach(sides, (each) => each.side().refresh)
    for (let step = 0; step < steps; step++) yield* simulation.step
    yield* simulation.finish
  }).pipe(Effect.scoped)

layer(stores, { excludeTestServices: true })("the ledger, against a sequential model", (it) => {
  it.effect(
    "never gives more than there is, books what was drawn, and gives all there is where nobody holds any",
    () => forSeeds(2, simulate),
    600_000
  )
})
