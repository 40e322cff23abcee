import { assert, describe, it } from "@effect/vitest"
import { type Booking, bookingOf, columnsOf, cutDown } from "#src/llm/ledger/Settlements.ts"
import { recordOf } from "./LedgerProbe.ts"

const booking = (charge: bigint, isCapped: boolean): Booking =>
  bookingOf(
    recordOf("usr_1", "key_1", {
      charge: String(charge),
      loss: "0",
      covered: false,
      draws: [
        { limit: "credits:usr_1", windowStart: 0, amount: String(charge), leased: true },
        { limit: "key:key_1", windowStart: 0, amount: String(charge), leased: isCapped }
      ]
    })
  )

const lossOf = ({ losses }: Booking): bigint | undefined => losses.get("beyond_hold")

describe("bookings that nothing covers any more", () => {
  it("are cut from the youngest on, of all money limits alike, and what is cut is lost to the platform", () => {
    const [first, second] = [booking(10n, true), booking(10n, false)]
    cutDown([first, second], { limit: "credits:usr_1", windowStart: 0, amount: 13n })
    assert.deepStrictEqual([first.charge, lossOf(first)], [7n, 3n])
    assert.deepStrictEqual([second.charge, lossOf(second)], [0n, 10n])
    assert.deepStrictEqual(
      first.draws.map(({ amount }) => amount),
      [7n, 7n]
    )
  })

  it("leave other windows of an allowance as they are", () => {
    const covered = bookingOf(
      recordOf("usr_1", "key_1", {
        charge: "0",
        loss: "0",
        covered: true,
        draws: [
          { limit: "allowance:sub_1:hour", windowStart: 3_600_000, amount: "10", leased: true },
          { limit: "allowance:sub_1:hour", windowStart: 7_200_000, amount: "10", leased: true }
        ]
      })
    )
    cutDown([covered], { limit: "allowance:sub_1:hour", windowStart: 7_200_000, amount: 4n })
    assert.deepStrictEqual(
      covered.draws.map(({ amount }) => amount),
      [10n, 6n]
    )
    assert.strictEqual(covered.losses.size, 0)
  })

  it("that are cut to nothing leave no entry but the loss", () => {
    const one = booking(10n, true)
    cutDown([one], { limit: "credits:usr_1", windowStart: 0, amount: 10n })
    const columns = columnsOf([one])
    assert.deepStrictEqual(
      [columns.kinds, columns.amounts, columns.drawLimits],
      [["loss:beyond_hold"], ["10"], ["loss:beyond_hold"]]
    )
  })
})
