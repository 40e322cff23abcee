import type { CallRecord, Loss } from "#streams/llm/CallRecord.ts"

/** The bookings of a finished call. Amounts may be cut down before they are booked. */
export interface Booking {
  readonly record: CallRecord
  charge: bigint
  /** by reason */
  readonly losses: Map<Loss["reason"], bigint>
  readonly draws: Array<{
    readonly limit: string
    readonly windowStart: number
    readonly leased: boolean
    amount: bigint
  }>
}

export const bookingOf = (record: CallRecord): Booking => ({
  record,
  charge: BigInt(record.settlement.charge),
  losses: lossesOf(record.settlement),
  draws: record.settlement.draws.map(({ amount, leased, limit, windowStart }) => ({
    limit,
    windowStart,
    leased,
    amount: BigInt(amount)
  }))
})

/** Records from before losses had reasons have only the amount beyond the hold. */
const lossesOf = ({ loss, losses }: CallRecord["settlement"]): Booking["losses"] => {
  const booked: Booking["losses"] = new Map()
  for (const { amount, reason } of losses ?? [{ reason: "beyond_hold" as const, amount: loss }])
    add(booked, reason, BigInt(amount))
  return booked
}

const add = (losses: Booking["losses"], reason: Loss["reason"], amount: bigint): void => {
  if (amount > 0n) losses.set(reason, (losses.get(reason) ?? 0n) + amount)
}

/** An uncovered amount of one limit. */
export interface Missing {
  readonly limit: string
  readonly windowStart: number
  readonly amount: bigint
}

const isMoney = (limit: string): boolean => !limit.startsWith("allowance:")

/**
 * Cuts the youngest bookings down by the missing amount: of money, the platform loses it. Answers the amount that no
 * booking draws, and that so could not be cut.
 */
export const cutDown = (
  bookings: ReadonlyArray<Booking>,
  { amount, limit, windowStart }: Missing
): bigint => {
  let missing = amount
  for (const booking of bookings.toReversed()) {
    const draw = booking.draws.find(
      (one) => one.leased && one.limit === limit && one.windowStart === windowStart
    )
    if (draw === undefined || missing === 0n) continue
    const cut = draw.amount < missing ? draw.amount : missing
    missing -= cut
    if (isMoney(limit)) {
      booking.charge -= cut
      add(booking.losses, "beyond_hold", cut)
      for (const each of booking.draws) if (isMoney(each.limit)) each.amount -= cut
    } else {
      draw.amount -= cut
    }
  }
  return missing
}

/** Entries and draws by column, as `ledger_settle` takes them. */
interface SettlementColumns {
  readonly requests: Array<string>
  readonly kinds: Array<string>
  readonly debits: Array<string>
  readonly credits: Array<string>
  readonly amounts: Array<string>
  readonly units: Array<string>
  readonly users: Array<string>
  readonly keys: Array<string>
  readonly starts: Array<string>
  /** of each draw: the place of its entry, from 1 */
  readonly drawEntries: Array<string>
  readonly drawLimits: Array<string>
  readonly drawStarts: Array<string>
  readonly drawAmounts: Array<string>
  readonly drawLeased: Array<string>
}

const noColumns = (): SettlementColumns => ({
  requests: [],
  kinds: [],
  debits: [],
  credits: [],
  amounts: [],
  units: [],
  users: [],
  keys: [],
  starts: [],
  drawEntries: [],
  drawLimits: [],
  drawStarts: [],
  drawAmounts: [],
  drawLeased: []
})

interface Entry {
  readonly kind: string
  readonly debit: string
  readonly credit: string
  readonly amount: bigint
  readonly unit: "pico-usd" | "token"
  readonly start: number
}

const pushEntry = (into: SettlementColumns, { id, keyId, userId }: CallRecord, entry: Entry): void => {
  into.requests.push(id)
  into.kinds.push(entry.kind)
  into.debits.push(entry.debit)
  into.credits.push(entry.credit)
  into.amounts.push(String(entry.amount))
  into.units.push(entry.unit)
  into.users.push(userId)
  into.keys.push(keyId)
  into.starts.push(String(entry.start))
}

/** A charge, drawn from the credits and counted by the key; each loss, counted by its reason; a draw of each allowance window. */
export const columnsOf = (bookings: Iterable<Booking>): SettlementColumns => {
  const columns = noColumns()
  const pushDraw = ({ amount, leased, limit, windowStart }: Booking["draws"][number]): void => {
    columns.drawEntries.push(String(columns.requests.length))
    columns.drawLimits.push(limit)
    columns.drawStarts.push(String(windowStart))
    columns.drawAmounts.push(String(amount))
    columns.drawLeased.push(String(leased))
  }
  for (const { charge, draws, losses, record } of bookings) {
    const money = { unit: "pico-usd", credit: "revenue", start: 0 } as const
    if (charge > 0n) {
      const debit = `credits:${record.userId}`
      pushEntry(columns, record, { ...money, kind: "charge", debit, amount: charge })
      for (const draw of draws) if (isMoney(draw.limit)) pushDraw(draw)
    }
    for (const [reason, amount] of losses) {
      const kind = `loss:${reason}`
      pushEntry(columns, record, { ...money, kind, debit: kind, amount })
      pushDraw({ limit: kind, windowStart: 0, leased: false, amount })
    }
    for (const draw of draws) {
      if (isMoney(draw.limit) || draw.amount === 0n) continue
      const kind = `allowance:${draw.limit.split(":")[2]}`
      const { amount, limit: debit, windowStart: start } = draw
      pushEntry(columns, record, { kind, debit, credit: "used", amount, unit: "token", start })
      pushDraw(draw)
    }
  }
  return columns
}
