import * as fs from "node:fs"
import { join } from "node:path"
import { latencyOf, type BenchCase, sized } from "#bench/harness/Suite.ts"

/** The limit: the rate of this disk and Node's file system calls for batches of so many records, and nothing else. */
export const rawDisk =
  (batchRecords: number, recordBytes: number): BenchCase["run"] =>
  async (context) => {
    const forMillis = sized(context, { tiny: 50, quick: 800, full: 2000 })
    const batch = Buffer.alloc(batchRecords * recordBytes, 0x5a)
    const descriptor = fs.openSync(join(context.directory, "raw"), "w")
    const latencies: Array<number> = []
    const startedAt = performance.now()
    await new Promise<void>((resolve, reject) => {
      let position = 0
      const next = (): void => {
        const begunAt = performance.now()
        if (begunAt - startedAt >= forMillis) return resolve()
        fs.write(descriptor, batch, 0, batch.length, position, (writeError) => {
          if (writeError !== null) return reject(writeError)
          position += batch.length
          fs.fdatasync(descriptor, (syncError) => {
            if (syncError !== null) return reject(syncError)
            latencies.push(performance.now() - begunAt)
            next()
          })
        })
      }
      next()
    })
    const elapsedMillis = performance.now() - startedAt
    fs.closeSync(descriptor)
    const work = latencies.length * batchRecords
    return {
      work,
      elapsedMillis,
      latency: latencyOf(Float64Array.from(latencies)),
      figures: {
        "fsyncs/s": (latencies.length / elapsedMillis) * 1000,
        "MB/s": (work * recordBytes) / elapsedMillis / 1000,
        "records/fsync": batchRecords
      }
    }
  }

/** The least that any append can cost: the record's bytes into a buffer, the callback into a list. */
export const copyCalls =
  (recordBytes: number): BenchCase["run"] =>
  async (context) => {
    const record = new Uint8Array(recordBytes).fill(0x5a)
    const perTurn = 1000
    const turns = sized(context, { tiny: 20, quick: 2000, full: 5000 })
    const buffer = new Uint8Array(perTurn * recordBytes)
    const waiting: Array<() => void> = []
    const done = (): void => undefined
    let elapsedMillis = 0
    for (let turn = 0; turn < turns; turn++) {
      const startedAt = performance.now()
      for (let i = 0; i < perTurn; i++) {
        buffer.set(record, i * recordBytes)
        waiting.push(done)
      }
      elapsedMillis += performance.now() - startedAt
      waiting.length = 0
    }
    return { work: turns * perTurn, elapsedMillis, cpuMillis: elapsedMillis }
  }
