import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { captureLog } from "#test/harness/CapturedLog.ts"
import * as EventIds from "#src/analytics/ingest/EventIds.ts"
import { eventLogConsumers } from "#src/analytics/ingest/EventLog.ts"
import { hashOfId, IdTable, slotBytes, slotsMin } from "#src/analytics/ingest/IdIndex.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { until } from "#test/harness/Eventually.ts"
import { storedEvent } from "./Events.ts"
import { noon } from "./Senders.ts"

const openLog = (root: string) =>
  DurableLog.open({ directory: join(root, "log"), consumers: Object.values(eventLogConsumers) })

const openIds = (log: DurableLog.DurableLog, root: string) =>
  EventIds.make(log, { directory: join(root, "ids"), idsMax: 10_000, openSitesMax: 4 })

const site = storedEvent().site

const accept = (log: DurableLog.DurableLog, ids: EventIds.EventIds["Service"], id: string) =>
  Effect.callback<void, DurableLog.LogUnavailable>((resume) => {
    const hash = hashOfId(id)
    const claim = ids.begin(site, [hash], noon)
    const record = EventRecord.encode(storedEvent({ received: noon, ts: noon, site }), hash)
    const offset = log.append(record, (failure) => {
      claim.settle(failure === undefined)
      resume(failure === undefined ? Effect.void : Effect.fail(failure))
    })
    if (typeof offset === "number") claim.at(offset)
  })

/** The one file of ids, after an event with the id "kept". */
const withOneId = Effect.fnUntraced(function* (root: string) {
  yield* Effect.scoped(
    Effect.gen(function* () {
      const log = yield* openLog(root)
      yield* accept(log, yield* openIds(log, root), "kept")
    })
  )
  const directory = join(root, "ids", site)
  return join(directory, fs.readdirSync(directory)[0] ?? "")
})

const damages: ReadonlyArray<readonly [what: string, damage: (file: string) => void]> = [
  ["random bytes", (file) => fs.writeFileSync(file, randomBytes(fs.statSync(file).size))],
  ["random bytes of another length", (file) => fs.writeFileSync(file, randomBytes(54_321))],
  ["ones", (file) => fs.writeFileSync(file, Buffer.alloc(fs.statSync(file).size, 0xff))],
  [
    "full slots with times that can be",
    (file) => {
      const bytes = randomBytes(fs.statSync(file).size)
      for (let at = 8; at < bytes.length; at += slotBytes) bytes.writeBigUInt64LE(BigInt(noon), at)
      fs.writeFileSync(file, bytes)
    }
  ]
]

describe("a damaged file of event ids", () => {
  for (const [what, damage] of damages) {
    it.effect(`with ${what} is made anew from the log, and named`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* TestClock.setTime(noon)
          const root = yield* temporaryDirectory
          const file = yield* withOneId(root)
          damage(file)
          const said = yield* captureLog(
            Effect.scoped(
              Effect.gen(function* () {
                const log = yield* openLog(root)
                const ids = yield* openIds(log, root)
                assert.strictEqual(ids.look(site, hashOfId("new"), noon), "new")
                yield* TestClock.adjust(6_000)
                yield* Effect.promise(() =>
                  until("the id is known again", async () => {
                    const kept = ids.look(site, hashOfId("kept"), noon)
                    return kept === "stored" ? undefined : String(kept)
                  })
                )
                yield* accept(log, ids, "later")
                assert.strictEqual(ids.look(site, hashOfId("later"), noon), "stored")
              })
            )
          )
          assert.include(said, file)
        })
      )
    )
  }

  it("that is damaged while it is open ends no search in a loop", () => {
    const file = join(fs.mkdtempSync("/tmp/signalbox-ids-"), "00000001.ids")
    const table = IdTable.create(file, slotsMin)
    fs.writeFileSync(file, Buffer.alloc(slotsMin * slotBytes, 0x11))
    assert.isUndefined(table.find(7n))
    assert.throws(() => table.put(7n, noon), file)
    table.close()
  })
})
