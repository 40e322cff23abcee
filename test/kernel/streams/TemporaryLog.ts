import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { DurableLog, LogRecord, LogUnavailable } from "#streams/kernel/DurableLog.ts"

/** A directory of the test's own, removed with the scope. */
export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "signalbox-log-"))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

export const bytes = (text: string): Uint8Array => Buffer.from(text, "latin1")

export const texts = (records: ReadonlyArray<LogRecord>): ReadonlyArray<string> =>
  records.map((record) => Buffer.from(record.payload).toString("latin1"))

/** Everything the consumer can read, from the log's first offset. */
export const readAll = (
  log: DurableLog,
  consumer: string
): Effect.Effect<ReadonlyArray<LogRecord>, LogUnavailable> =>
  log.consumer(consumer).read({ from: log.stats().firstOffset, maxRecords: Infinity, maxBytes: Infinity })

/** Appends without waiting for each: one group commit takes as many as it finds. */
export const appendTexts = (log: DurableLog, records: ReadonlyArray<string>) =>
  Effect.forEach(records, (record) => log.appendEffect(bytes(record)), { concurrency: "unbounded" })
