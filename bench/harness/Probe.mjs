import { existsSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { createServer } from "node:net"
import { dirname } from "node:path"
import { GCProfiler, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/**
 * Loaded into a process under test by `--import`, with `BENCH_PROBE` naming a directory: it listens on a Unix socket
 * there, named after the process, and answers one command a line with one line of JSON.
 *
 * - `start`, `stop`: garbage collections and allocations in between, from V8's own records of each collection
 * - `profile`, `save FILE`: a CPU profile of what runs in between, written to the file
 * - `collect`: a full garbage collection, and the bytes that are in use after it
 * - `watch`, `delays`: how long the event loop kept one waiting who asked every millisecond in between, and the most CPU time
 *   of one turn, in milliseconds: on a busy machine a turn takes longer than its work
 *
 * It costs nothing while nothing is asked. It is plain JavaScript, because it is loaded before everything else.
 */

const directory = process.env["BENCH_PROBE"]

let profiler
let usedAtStart = 0
let inspector
let watch
let delays = []
let longestCpuMillis = 0

const usedHeapBytes = () => process.memoryUsage().heapUsed

/** Bytes allocated: the heap's growth between collections, as each one records the heap before and after itself. */
const allocated = (statistics, usedAtEnd) => {
  let used = usedAtStart
  let bytes = 0
  for (const { afterGC, beforeGC } of statistics) {
    bytes += Math.max(0, beforeGC.heapStatistics.usedHeapSize - used)
    used = afterGC.heapStatistics.usedHeapSize
  }
  return bytes + Math.max(0, usedAtEnd - used)
}

/** CPU time of this thread so far, in milliseconds. Source: proc(5); 0 where the system has no such file. */
const schedule = "/proc/thread-self/schedstat"
const cpuMillisOf = () => {
  if (!existsSync(schedule)) return () => 0
  const file = openSync(schedule, "r")
  const text = Buffer.alloc(128)
  return () => Number.parseInt(text.latin1Slice(0, readSync(file, text, 0, text.length, 0)), 10) / 1e6
}
let cpuMillis

/** A turn that took long kept all waiting who asked during it: each of them counts, not the turn alone. */
const watchLoop = () => {
  cpuMillis ??= cpuMillisOf()
  let last = performance.now()
  let lastCpu = cpuMillis()
  longestCpuMillis = 0
  const look = () => {
    const now = performance.now()
    const cpu = cpuMillis()
    longestCpuMillis = Math.max(longestCpuMillis, cpu - lastCpu)
    lastCpu = cpu
    for (let late = now - last - 1; late > 0; late--) delays.push(late)
    if (now - last <= 1) delays.push(0)
    last = now
  }
  delays = []
  watch = setInterval(look, 1)
}

const percentile = (sorted, part) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

const commands = {
  watch: () => {
    watchLoop()
    return {}
  },
  delays: () => {
    clearInterval(watch)
    const sorted = Float64Array.from(delays).sort()
    delays = []
    return {
      p50Millis: percentile(sorted, 0.5),
      p99Millis: percentile(sorted, 0.99),
      maxMillis: percentile(sorted, 1),
      longestCpuMillis
    }
  },
  start: () => {
    profiler = new GCProfiler()
    profiler.start()
    usedAtStart = usedHeapBytes()
    return {}
  },
  stop: () => {
    const usedAtEnd = usedHeapBytes()
    const statistics = profiler?.stop()?.statistics ?? []
    profiler = undefined
    const gcMillis = statistics.reduce((sum, one) => sum + one.cost / 1000, 0)
    return { collections: statistics.length, gcMillis, allocatedBytes: allocated(statistics, usedAtEnd) }
  },
  profile: async () => {
    inspector = new Session()
    inspector.connect()
    await inspector.post("Profiler.enable")
    await inspector.post("Profiler.setSamplingInterval", { interval: 200 })
    await inspector.post("Profiler.start")
    return {}
  },
  save: async (file) => {
    const { profile } = await inspector.post("Profiler.stop")
    inspector.disconnect()
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(profile))
    return { file }
  },
  collect: () => {
    setFlagsFromString("--expose-gc")
    const collect = runInNewContext("gc")
    // Twice: finalizers of the first may release native memory that the second then frees.
    collect()
    collect()
    const { external, heapUsed } = process.memoryUsage()
    return { usedBytes: heapUsed + external }
  }
}

const obey = async (line) => {
  const [name, ...rest] = line.split(" ")
  const command = commands[name]
  if (command === undefined) return { error: `unknown command ${name}` }
  try {
    return await command(rest.join(" "))
  } catch (error) {
    return { error: String(error) }
  }
}

if (directory !== undefined) {
  const path = `${directory}/${process.pid}`
  const server = createServer((socket) => {
    let text = ""
    socket.unref()
    socket.on("error", () => socket.destroy())
    socket.on("data", async (chunk) => {
      text += chunk
      const lines = text.split("\n")
      text = lines.pop() ?? ""
      for (const line of lines) socket.write(`${JSON.stringify(await obey(line))}\n`)
    })
  })
  mkdirSync(directory, { recursive: true })
  // A process that was killed leaves its socket behind, and numbers come again.
  rmSync(path, { force: true })
  server.listen(path)
  server.unref()
}
