import { Effect } from "effect"
import { SinkUnavailable, type Sink, type SinkBatch } from "#streams/kernel/Sink.ts"
import type { SeededRandom } from "#test/simulation/Seed.ts"

/**
 * A sink on another machine that behaves like ClickHouse: a repeated token is dropped silently, whatever rows come
 * with it, and tokens outlive the writer's crashes. It fails before or after it has applied a batch, or in between.
 */
export class SinkModel {
  faultChance = 0
  /** some writes take up to so long */
  maxMillis = 0
  readonly rows = new Map<number, string>()
  /** what must never happen, in words */
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

  /** The sink as one process reaches it: what a crashed one had under way is over, as a sink must see to. */
  connect(): Sink {
    this.failed = undefined
    const writer = ++this.writer
    return { write: (batch) => this.write(batch, writer) }
  }

  private write(batch: SinkBatch, writer: number): Effect.Effect<void, SinkUnavailable> {
    return Effect.gen({ self: this }, function* () {
      if (writer !== this.writer) return yield* Effect.never
      this.writes++
      this.check(batch)
      this.failed = batch
      if (this.random.chance(0.3)) yield* Effect.sleep(this.random.below(this.maxMillis))
      if (writer !== this.writer) return yield* Effect.never
      const fate = this.random.chance(this.faultChance) ? this.random.below(4) : -1
      if (fate === 0) return yield* unavailable
      if (fate === 1) return yield* Effect.die(new Error("a bug in the sink"))
      this.apply(batch, fate === 2)
      if (fate >= 2) return yield* unavailable
      this.failed = undefined
    })
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
      if (partly && this.random.chance(0.5)) continue
      const row = Buffer.from(record.payload).toString("latin1")
      const present = this.rows.get(record.offset)
      if (present === undefined) this.rows.set(record.offset, row)
      else if (!batch.recovering) this.violations.push(`offset ${record.offset} was written twice`)
      else if (present !== row) this.violations.push(`offset ${record.offset} became another record`)
    }
  }
}

const unavailable = Effect.fail(new SinkUnavailable({ problem: "it is away", cause: undefined }))
