import { assert, describe, it } from "@effect/vitest"
import { eventTime } from "#streams/analytics/EventTime.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"

const now = Date.UTC(2026, 10, 21)

describe("the time of an imported event", () => {
  it("may be as old as 1970, the first day that can be stored, and no older", () => {
    assert.strictEqual(eventTime(0, now, Number.POSITIVE_INFINITY), 0)
    for (const timestamp of [-1, -1e15]) {
      assert.instanceOf(eventTime(timestamp, now, Number.POSITIVE_INFINITY), FieldFault)
    }
  })
})
