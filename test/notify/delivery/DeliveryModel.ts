import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** A request as its service got it. */
export interface SimulatedRequest {
  readonly id: string
  readonly channel: string
  /** the lease under which it was made, and the mark that its attempt was given */
  readonly epoch: string
  readonly repeated: boolean
  readonly atMillis: number
  /** undefined: no answer came */
  readonly status: number | undefined
  /** the answer asked for no request before this instant */
  readonly restsUntil: number | undefined
}

/** A statement that began by the clock before is over by then. */
const statementMillis = 500

/** The model: deliveries that were accepted, in their order, and all that may have kept one from being sent. */
export class DeliveryModel {
  readonly accepted = new Map<
    string,
    {
      readonly channel: string
      readonly message: string
      /** its places in the order of its lane: one more each time that it was redriven */
      readonly places: Array<number>
    }
  >()
  readonly deleted = new Set<string>()
  /** channels that were off, or whose subscriber had left, at some time */
  readonly left = new Set<string>()
  /** seconds by which the clock was ahead at most */
  ahead = 0
  /** when the clock of Postgres was set: before and after each time */
  private readonly clocks: Array<readonly [from: number, to: number]> = []
  private place = 0

  accept(id: string, channel: string, message: string): void {
    this.accepted.set(id, { channel, message, places: [this.place++] })
  }

  /** In the order that they had. */
  redrive(ids: ReadonlyArray<string>): void {
    const places = ids.map((id) => this.accepted.get(id)?.places ?? [])
    for (const own of places.toSorted((one, other) => (one.at(-1) ?? 0) - (other.at(-1) ?? 0)))
      own.push(this.place++)
  }

  setClock<E, R>(seconds: number, set: Effect.Effect<unknown, E, R>): Effect.Effect<void, E, R> {
    this.ahead = Math.max(this.ahead, seconds)
    return Effect.suspend(() => {
      const from = Date.now()
      return Effect.map(set, () => void this.clocks.push([from, Date.now() + statementMillis]))
    })
  }

  wasClockSet(from: number, to: number): boolean {
    return this.clocks.some(([begun, done]) => begun <= to && done >= from)
  }
}

/**
 * Has Postgres write down leases, in its own order: 'claimed' with the first job of the lane, at the instant that the lease
 * counts from (on a busy machine the statement may go on for long after it), and then the end of the attempt, or none where
 * the lease was lost.
 */
export const createLeaseLog = Effect.fnUntraced(function* (leaseMillis: number) {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE lease_log (n bigserial PRIMARY KEY, lane text NOT NULL, epoch bigint NOT NULL, seq bigint NOT NULL,
    id text NOT NULL, repeated boolean NOT NULL, event text NOT NULL, at timestamptz NOT NULL)`
  yield* sql.unsafe(`CREATE FUNCTION log_lease() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      event text := CASE WHEN TG_OP = 'DELETE' THEN 'ended' WHEN NEW.attempts > OLD.attempts THEN 'claimed'
        WHEN NEW.open THEN 'left' WHEN NEW.attempts < OLD.attempts THEN 'withdrawn' ELSE 'closed' END;
      since interval := interval '0';
    BEGIN
      IF event = 'claimed' THEN
        SELECT jobs_now() - (l.due_at - interval '${leaseMillis} ms') INTO since
        FROM job_lanes l WHERE l.queue = OLD.queue AND l.lane = OLD.lane;
        -- The clock was set amid the statement.
        IF since NOT BETWEEN interval '0' AND interval '900 ms' THEN since := interval '0'; END IF;
      END IF;
      INSERT INTO lease_log (lane, epoch, seq, id, repeated, event, at)
      SELECT OLD.lane, l.epoch, OLD.seq, OLD.id, coalesce(NEW.repeated, OLD.repeated), event, clock_timestamp() - since
      FROM job_lanes l WHERE l.queue = OLD.queue AND l.lane = OLD.lane;
      RETURN NULL;
    END $$`)
  yield* sql`CREATE TRIGGER jobs_log_lease AFTER DELETE OR UPDATE OF open ON jobs
    FOR EACH ROW EXECUTE FUNCTION log_lease()`
})

interface Lease {
  readonly lane: string
  readonly epoch: string
  readonly seq: string
  readonly id: string
  readonly repeated: boolean
  /** by the clock of requests */
  readonly atMillis: number
  /** 'closed': the same job again. 'left': with an unknown end, by an attempt that was cut off. undefined: it was lost. */
  end: "ended" | "closed" | "withdrawn" | "left" | undefined
  endMillis: number
}

const leasesOf = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql<
    Omit<Lease, "end" | "endMillis"> & { readonly event: "claimed" | NonNullable<Lease["end"]> }
  >`SELECT lane, epoch::text, seq::text, id, repeated, event, extract(epoch FROM at)::float8 * 1000 AS "atMillis"
    FROM lease_log ORDER BY n`
  const leases = new Map<string, Lease>()
  for (const { event, ...row } of rows) {
    const lease = leases.get(row.epoch)
    if (event === "claimed") leases.set(row.epoch, { ...row, end: undefined, endMillis: Infinity })
    else if (lease !== undefined) Object.assign(lease, { end: event, endMillis: row.atMillis })
  }
  return leases
})

/** Its attempt may have had its effect at any time: the worker died, the lease ran out, or the attempt was cut off. */
const isOpen = ({ end }: Lease): boolean => end === undefined || end === "left"

/** Leases of a lane follow each other in the order of its deliveries, each when the one before it is over. */
const faultsOfLane = (
  model: DeliveryModel,
  leases: ReadonlyArray<Lease>,
  leaseMillis: number
): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const seqs = new Map<string, Array<string>>()
  const opened = new Set<string>()
  let last = -1
  for (const [index, lease] of leases.entries()) {
    const { atMillis, id, repeated, seq } = lease
    const said = `${id} on ${lease.lane}, lease ${lease.epoch}`
    const own = seqs.get(id) ?? []
    if (own.at(-1) !== seq) own.push(seq)
    seqs.set(id, own)
    const place = model.accepted.get(id)?.places[own.length - 1] ?? -1
    if (place < last) faults.push(`out of order: ${said}`)
    last = place
    const before = leases[index - 1]
    // The two clocks are read one after the other.
    const isEarly = before !== undefined && atMillis < before.atMillis + leaseMillis - 1
    if (isEarly && before.end === undefined && !model.wasClockSet(before.atMillis, atMillis))
      faults.push(`taken from another lease: ${said}`)
    if (before?.end === "ended" && before.seq === seq) faults.push(`taken after its end: ${said}`)
    if (repeated !== (opened.has(id) || own.length > 1))
      faults.push(`${repeated ? "marked without a reason" : "repeated without a mark"}: ${said}`)
    if (isOpen(lease)) opened.add(id)
  }
  return faults
}

/** Each request belongs to an attempt that was stored, is over when that is settled, and leaves the service its pause. */
const faultsOfRequests = (
  model: DeliveryModel,
  leases: ReadonlyMap<string, Lease>,
  requests: ReadonlyArray<SimulatedRequest>
): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const gone = new Set<string>()
  const made = new Set<string>()
  const before = new Map<string, SimulatedRequest>()
  for (const request of requests) {
    const { atMillis, channel, epoch, id, repeated, status } = request
    const lease = leases.get(epoch)
    const said = `${id} on ${channel}, lease ${epoch}, answer ${status}: ${lease?.end}`
    if (lease === undefined || lease.id !== id || lease.repeated !== repeated) {
      faults.push(`no such attempt: ${said}`)
      continue
    }
    // Only an attempt of unknown end may come late, behind its repetition and those after it.
    if (isOpen(lease)) continue
    if (atMillis > lease.endMillis) faults.push(`after the end of its attempt: ${said}`)
    if (lease.end === "withdrawn") faults.push(`of an attempt that was not made: ${said}`)
    if (lease.end === "closed" && status === 201) faults.push(`made again though it came: ${said}`)
    if (gone.has(channel) && !model.left.has(channel)) faults.push(`to a channel that is gone: ${said}`)
    if (status === 410) gone.add(channel)
    made.add(epoch)
    const { atMillis: earlier = 0, restsUntil = 0 } = before.get(channel) ?? {}
    // Both instants are whole milliseconds.
    if (atMillis < restsUntil - 2 && !model.wasClockSet(earlier, atMillis))
      faults.push(`in a pause that was asked for: ${said}`)
    before.set(channel, request)
  }
  for (const { end, epoch, id, lane } of leases.values())
    if (end === "closed" && !made.has(epoch)) faults.push(`counted, though it was not made: ${id} on ${lane}`)
  return faults
}

interface Ended {
  readonly id: string
  readonly outcome: "done" | "dead"
  readonly repeated: boolean
  readonly last_error: string | null
  readonly isDropped: boolean | null
}

/** Each delivery has one outcome, and a reason for it. */
const faultsOfEnds = Effect.fnUntraced(function* (
  model: DeliveryModel,
  requests: ReadonlyArray<SimulatedRequest>
) {
  const sql = yield* SqlClient
  const rows =
    yield* sql<Ended>`SELECT e.id, e.outcome, e.repeated, e.last_error, d.dropped_at IS NOT NULL AS "isDropped"
    FROM jobs_ended e LEFT JOIN deliveries d ON d.id = e.id WHERE e.queue = 'deliveries'`
  const ends = new Map(rows.map((row) => [row.id, row]))
  const gone = new Set(requests.filter(({ status }) => status === 410).map(({ channel }) => channel))
  const faults: Array<string> = []
  if (ends.size !== rows.length || rows.length !== model.accepted.size)
    faults.push(`${rows.length} outcomes of ${ends.size} deliveries, ${model.accepted.size} accepted`)
  for (const [id, { channel, message }] of model.accepted) {
    const end = ends.get(id)
    const own = requests.filter((request) => request.id === id)
    const arrivals = own.filter(({ status }) => status === 201).length
    const isDropped =
      end?.isDropped === true || (model.deleted.has(message) && end?.outcome === "done" && arrivals === 0)
    const said = `${id} on ${channel}: ${JSON.stringify(end)}, answers ${own.map(({ status }) => status).join(" ")}`
    if (end === undefined) faults.push(`no outcome: ${said}`)
    else if (arrivals > 1 && !end.repeated) faults.push(`came twice without a mark: ${said}`)
    else if (isDropped && !(model.left.has(channel) || gone.has(channel) || model.deleted.has(message)))
      faults.push(`dropped without a reason: ${said}`)
    else if (!isDropped && end.outcome === "done" && arrivals === 0) faults.push(`never came: ${said}`)
    else if (
      end.outcome === "dead" &&
      !own.some(({ status }) => status === 400 || status === 413 || status === 401) &&
      !(model.ahead > 72 * 3_600)
    )
      faults.push(`given up without a reason: ${said}`)
    else if (end.outcome === "dead" && !model.deleted.has(message)) faults.push(`not redriven: ${said}`)
    else if (end.outcome === "dead" && arrivals > 0 && !end.repeated)
      faults.push(`given up though it came: ${said}`)
  }
  const stuck =
    yield* sql`SELECT lane FROM job_lanes WHERE queue = 'deliveries' AND (waiting <> 0 OR holder IS NOT NULL)`
  return [...faults, ...stuck.map((row) => `a lane is not free: ${JSON.stringify(row)}`)]
})

/** Everything that contradicts the model, a line each. */
export const faultsOf = Effect.fnUntraced(function* (
  model: DeliveryModel,
  requests: ReadonlyArray<SimulatedRequest>,
  leaseMillis: number
) {
  const leases = yield* leasesOf
  const lanes = Map.groupBy(leases.values(), ({ lane }) => lane)
  return [
    ...(yield* faultsOfEnds(model, requests)),
    ...[...lanes.values()].flatMap((own) => faultsOfLane(model, own, leaseMillis)),
    ...faultsOfRequests(model, leases, requests)
  ]
})
