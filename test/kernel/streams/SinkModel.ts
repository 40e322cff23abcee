import { Effect } from "effect"
import { SinkRefused, SinkUnavailable, type Sink, type SinkBatch } from "#streams/kernel/Sink.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"

/** A record that the sink takes in no company: it refuses a batch that holds one, or throws. */
export const isPoison = (text: string): boolean => isRefused(text) || isThrown(text)
const isRefused = (text: string): boolean => text.includes("!")
const isThrown = (text: string): boolean => text.includes("?")

/**
 * A sink on another machine that behaves like ClickHouse: a repeated token is dropped silently, with any rows, and
 * tokens outlive the writer's crashes. It fails before or after it has applied a batch, or in between.
 */
export class SinkModel {
  faultChance = 0
  /** some writes take up to so long */
  maxMillis = 0
  readonly rows = new Map<number, string>()
  /** violations of the sink's promises, in words */
  readonly violations: Array<string> = []
  writes = 0
  private readonly random: SeededRandom
  private readonly tokens = new Set<string>()
  /** the batch of this run that failed last: the next write must be the same one */
  private failed: SinkBatch | undefined = undefined
  private writer = 0

  constructor(random: SeededRandom) {
    this.random = random
  }

  /** The sink as one process reaches it: a crashed one's operations are over, as a sink must see to. */
  connect(): Sink {
    this.failed = undefined
    const writer = ++this.writer
    return {
      write: (batch) => this.write(batch, writer),
      check: Effect.suspend(() => (this.random.chance(this.faultChance) ? unavailable : Effect.void))
    }
  }

  private write(batch: SinkBatch, writer: number): Effect.Effect<void, SinkUnavailable | SinkRefused> {
    return Effect.gen({ self: this }, function* () {
      if (writer !== this.writer) return yield* Effect.never
      this.writes++
      this.check(batch)
      this.failed = batch.recovering ? undefined : batch
      if (this.random.chance(0.3)) yield* Effect.sleep(this.random.below(this.maxMillis))
      if (writer !== this.writer) return yield* Effect.never
      const fate = this.random.chance(this.faultChance) ? this.random.below(4) : -1
      if (fate === 0) return yield* unavailable
      if (fate === 1) return yield* this.refuse("size")
      const texts = batch.records.map(({ payload }) => Buffer.from(payload).toString("latin1"))
      if (texts.some(isThrown)) yield* Effect.andThen(this.forget, Effect.die(new Error("it cannot read it")))
      if (texts.some(isRefused)) {
        // A store that writes in parts may have some of the batch all the same.
        if (batch.recovering && this.random.chance(0.3)) this.apply(batch, true)
        return yield* this.refuse(this.random.chance(0.5) ? "record" : "unknown")
      }
      this.apply(batch, fate === 2)
      if (fate >= 2) return yield* unavailable
      this.failed = undefined
    })
  }

  /** After a refusal other batches come. */
  private readonly forget = Effect.sync(() => {
    this.failed = undefined
  })

  private refuse(blames: SinkRefused["blames"]) {
    const refused = new SinkRefused({ problem: "a value out of range", cause: undefined, blames })
    return Effect.andThen(this.forget, Effect.fail(refused))
  }

  private check(batch: SinkBatch): void {
    const expected = this.failed
    if (
      expected !== undefined &&
      (expected.token !== batch.token || expected.recovering !== batch.recovering)
    ) {
      this.violations.push(`${expected.token} failed, and ${batch.token} came instead of it`)
    }
    const isContiguous = batch.records.every((record, index) => record.offset === batch.from + index)
    if (!isContiguous || batch.to !== batch.from + batch.records.length || batch.records.length === 0) {
      this.violations.push(`${batch.token} does not hold its offsets`)
    }
  }

  private apply(batch: SinkBatch, partly: boolean): void {
    // A plain insert is atomic by its token; the missing rows of a recovery may arrive in part.
    if (!batch.recovering && (this.tokens.has(batch.token) || partly)) return
    if (!batch.recovering) this.tokens.add(batch.token)
    for (const record of batch.records) {
      const row = Buffer.from(record.payload).toString("latin1")
      if (isPoison(row) || (partly && this.random.chance(0.5))) continue
      const present = this.rows.get(record.offset)
      if (present === undefined) this.rows.set(record.offset, row)
      else if (!batch.recovering) this.violations.push(`offset ${record.offset} was written twice`)
      else if (present !== row) this.violations.push(`offset ${record.offset} became another record`)
    }
  }
}

const unavailable = Effect.fail(new SinkUnavailable({ problem: "it is away", cause: undefined }))
