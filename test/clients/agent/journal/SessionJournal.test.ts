import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { lineOf, readJournalText, type JournalEntry } from "#src/clients/agent/journal/JournalEntry.ts"
import { SessionJournal } from "#src/clients/agent/journal/SessionJournal.ts"
import { inDirectory } from "../TestClient.ts"

const session = { url: "http://x", root: "/w" }
const outcome = (text: string) => ({ ok: true, result: { text }, durationMs: 1 })
const callIds = ["a", "b", "c"]

const openAt = (path: string): SessionJournal => new SessionJournal(path, session)

/** All that a journal can be asked. */
const knowledge = (journal: SessionJournal) => ({
  lastSeq: journal.lastSeq,
  damaged: journal.damaged,
  calls: callIds.map((callId) => journal.call(callId))
})

const entryOf = fc.oneof(
  fc.record({
    kind: fc.constant("started" as const),
    callId: fc.constantFrom(...callIds),
    promptId: fc.constant("p")
  }),
  fc.record({ kind: fc.constant("asked" as const), callId: fc.constantFrom(...callIds) }),
  fc.record({
    kind: fc.constant("finished" as const),
    callId: fc.constantFrom(...callIds),
    outcome: fc.string({ unit: "binary" }).map(outcome)
  }),
  fc.record({ kind: fc.constant("closed" as const), callId: fc.constantFrom(...callIds), seq: fc.nat(9) }),
  fc.record({ kind: fc.constant("seen" as const), seq: fc.nat(9) })
)

const note = async (journal: SessionJournal, entry: JournalEntry): Promise<void> => {
  if (entry.kind === "started") await journal.started(entry.callId, entry.promptId)
  if (entry.kind === "asked") journal.asked(entry.callId)
  if (entry.kind === "finished") await journal.finished(entry.callId, entry.outcome)
  if (entry.kind === "closed") journal.closed(entry.callId, entry.seq)
  if (entry.kind === "seen") journal.seen(entry.seq)
}

describe("the journal of a session", () => {
  it("knows after a restart what it knew before, whatever was noted", () =>
    inDirectory((directory) =>
      fc.assert(
        fc.asyncProperty(fc.array(entryOf, { maxLength: 12 }), fc.uuid(), async (entries, name) => {
          const path = join(directory, name, "calls.log")
          const journal = openAt(path)
          for (const entry of entries) await note(journal, entry)
          await journal.close()
          const again = openAt(path)
          assert.deepStrictEqual(knowledge(again), knowledge(journal))
          await again.close()
          const third = openAt(path)
          assert.deepStrictEqual(knowledge(third), knowledge(journal))
          await third.close()
        }),
        { numRuns: 25 }
      )
    ))

  it("torn at any byte is what it was when its last whole line was written, and not damaged", () => {
    const entries: ReadonlyArray<JournalEntry> = [
      { kind: "session", ...session },
      { kind: "started", callId: "a", promptId: "p" },
      { kind: "finished", callId: "a", outcome: outcome("ä€😀\n") },
      { kind: "started", callId: "b", promptId: "p" },
      { kind: "closed", callId: "a", seq: 3 },
      { kind: "seen", seq: 3 }
    ]
    const lines = entries.map(lineOf)
    const bytes = Buffer.from(lines.join(""))
    for (let end = 0; end <= bytes.length; end++) {
      const text = bytes.subarray(0, end).toString("utf8")
      const whole = lines.filter((_, index) => Buffer.byteLength(lines.slice(0, index + 1).join("")) <= end)
      const read = readJournalText(text)
      assert.deepStrictEqual(read.entries, entries.slice(0, whole.length), `${end} bytes`)
      assert.isFalse(read.damaged, `${end} bytes`)
      assert.strictEqual(read.torn, Buffer.byteLength(whole.join("")) !== end, `${end} bytes`)
    }
  })

  it("with any one byte of a line changed gives no entry for it, and says that it is damaged", () => {
    const lines = [
      lineOf({ kind: "started", callId: "a", promptId: "p" }),
      lineOf({ kind: "seen", seq: 3 })
    ] as const
    const first = Buffer.from(lines[0])
    for (let at = 0; at < first.length; at++) {
      const changed = Buffer.from(first)
      changed[at] = (changed[at] ?? 0) ^ 0x04
      const read = readJournalText(changed.toString("latin1") + lines[1])
      assert.isFalse(
        read.entries.some(({ kind }) => kind === "started"),
        `byte ${at}`
      )
      // A line feed that is lost takes the line behind with it, and is a torn end.
      assert.isTrue(read.damaged || read.torn, `byte ${at}`)
    }
  })

  it("remembers being damaged", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "calls.log")
      writeFileSync(path, `nonsense\n${lineOf({ kind: "seen", seq: 1 })}`)
      await openAt(path).close()
      const journal = openAt(path)
      assert.isTrue(journal.damaged)
      await journal.close()
    }))

  it("goes on behind a torn end as if that had not been", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "calls.log")
      const journal = openAt(path)
      await journal.started("a", "p")
      await journal.started("b", "p")
      await journal.close()
      truncateSync(path, statSync(path).size - 3)
      const torn = openAt(path)
      assert.isUndefined(torn.call("b"))
      await torn.started("c", "p")
      await torn.close()
      const { damaged, entries, torn: isTorn } = readJournalText(readFileSync(path, "utf8"))
      assert.deepStrictEqual([damaged, isTorn, entries.length], [false, false, 4])
    }))

  it("keeps an outcome until the frame that closes its call was seen, and no longer", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "calls.log")
      const journal = openAt(path)
      await journal.started("a", "p")
      await journal.finished("a", outcome("kept"))
      assert.deepStrictEqual(journal.openCalls("p"), ["a"])
      journal.closed("a", 5)
      assert.deepStrictEqual(journal.openCalls("p"), [])
      journal.seen(4)
      assert.deepStrictEqual(journal.call("a"), { state: "closed", seq: 5 })
      journal.seen(5)
      assert.isUndefined(journal.call("a"))
      await journal.close()
      assert.notInclude(readFileSync(path, "utf8").split("\n").at(-2) ?? "", "kept")
      await openAt(path).close()
      assert.notInclude(readFileSync(path, "utf8"), "kept")
    }))

  it("is written anew when it has grown, with what was noted meanwhile", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "calls.log")
      const journal = openAt(path)
      const large = "x".repeat(100_000)
      const noted: Array<Promise<void>> = []
      for (let index = 0; index < 30; index++) {
        noted.push(journal.started(`n${index}`, "p"), journal.finished(`n${index}`, outcome(large)))
        journal.closed(`n${index}`, index)
        journal.seen(index)
      }
      noted.push(journal.started("a", "p"))
      await Promise.all(noted)
      await journal.close()
      assert.isBelow(statSync(path).size, 2_500_000)
      const again = openAt(path)
      assert.deepStrictEqual(again.call("a"), { state: "started", promptId: "p" })
      assert.strictEqual(again.lastSeq, 29)
      await again.close()
    }))

  it("fails where it cannot be written, and from then on", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "calls.log")
      const journal = openAt(path)
      rmSync(path)
      mkdirSync(path)
      const failure = await journal.started("a", "p").then(
        () => undefined,
        (error: unknown) => error
      )
      assert.match(String(failure), /EISDIR/)
      const again = await journal.started("b", "p").then(
        () => undefined,
        (error: unknown) => error
      )
      assert.match(String(again), /EISDIR/)
      await journal.close()
    }))

  it("is readable by its user alone", () =>
    inDirectory(async (directory) => {
      const path = join(directory, "sessions", "s", "calls.log")
      const journal = openAt(path)
      await journal.started("a", "p")
      await journal.close()
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(directory, "sessions", "s")).mode & 0o777, 0o700)
      assert.deepStrictEqual(readdirSync(join(directory, "sessions", "s")), ["calls.log"])
    }))
})
