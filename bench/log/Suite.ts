import type { BenchCase, BenchSuite } from "#bench/harness/Suite.ts"
import { checksumCases } from "./Checksum.ts"
import { appendCalls, groupCommit } from "./GroupCommit.ts"
import { copyCalls, rawDisk } from "./RawDisk.ts"

/** A collected event is about this long. */
const recordBytes = 300

/** `writers` requests are in flight at a time, each appending its next record when the last one is durable. */
const atConcurrency = (writers: number): ReadonlyArray<BenchCase> => {
  const group = `${writers} in flight`
  return [
    { name: `raw write + fdatasync, ${writers}`, group, baseline: true, run: rawDisk(writers, recordBytes) },
    { name: `durable log, ${writers}`, group, compared: "always", run: groupCommit(writers, recordBytes) }
  ]
}

export const suite: BenchSuite = {
  name: "log",
  about: `the durable log (${recordBytes}-byte records) against a bare write + fdatasync loop of the same batches`,
  unit: "records",
  cases: [
    ...[1, 16, 256, 4096].flatMap(atConcurrency),
    { name: "copy into a buffer", group: "call", baseline: true, run: copyCalls(recordBytes) },
    { name: "append", group: "call", compared: "always", run: appendCalls(recordBytes) },
    ...checksumCases(recordBytes),
    ...checksumCases(64 * 1024)
  ]
}
