import { existsSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { type HeapUse, residentMiB, threadMillis, type Use } from "./ProcessUse.ts"
import type { CaseContext, Latency, Part } from "./Suite.ts"

/** The directory of this run's probe sockets and profiles; set for all processes of a run. */
const probes = (): string | undefined => process.env["BENCH_PROBE"]
const profiles = (): string | undefined => process.env["BENCH_PROFILE"]

/** `NODE_OPTIONS` that load the probe into a process under test. */
export const probed = (): Readonly<Record<string, string>> => {
  const directory = probes()
  if (directory === undefined) return {}
  const file = pathToFileURL(join(import.meta.dirname, "Probe.mjs")).href
  return { BENCH_PROBE: directory, NODE_OPTIONS: `--import ${file}` }
}

/** Sends one command to the probe of a process; undefined where it has none. */
const ask = async <Answer>(pid: number, command: string): Promise<Answer | undefined> => {
  const path = join(probes() ?? "", String(pid))
  if (probes() === undefined || !existsSync(path)) return undefined
  const text = await new Promise<string>((resolve, reject) => {
    let received = ""
    const socket = connect(path, () => socket.write(`${command}\n`))
    socket.on("error", reject)
    socket.on("data", (chunk) => {
      received += chunk.toString()
      if (!received.endsWith("\n")) return
      socket.destroy()
      resolve(received)
    })
    socket.on("close", () => reject(new Error(`The probe of process ${pid} hung up`)))
  })
  const answer: Answer & { readonly error?: string } = JSON.parse(text)
  if (answer.error !== undefined) throw new Error(`${command}: ${answer.error}`)
  return answer
}

/**
 * Has V8 free what is unreachable, so that resident memory afterwards is memory in use. Answers the bytes in use by V8 and its
 * buffers, NaN where the process has no probe: resident memory tells little where it was larger before.
 */
export const collectGarbage = async (pid: number): Promise<number> => {
  const collected = await ask<{ readonly usedBytes: number }>(pid, "collect")
  // Pages are given back a moment later.
  await new Promise((resolve) => setTimeout(resolve, 200))
  return collected?.usedBytes ?? Number.NaN
}

/** How long the event loop kept others waiting, and the most CPU time of one of its turns (0 where the system does not tell). */
export interface Delays extends Latency {
  readonly longestCpuMillis: number
}

/** Runs the work and answers with how long the event loop of the process kept others waiting meanwhile; undefined where it has no probe. */
export const watched = async <A>(
  pid: number,
  work: () => Promise<A>
): Promise<{ readonly result: A; readonly delays: Delays | undefined }> => {
  await ask(pid, "watch")
  const result = await work()
  return { result, delays: await ask<Delays>(pid, "delays") }
}

/** Begins to measure what a process uses; the function that it answers ends that. */
export const startMeter = async (pid: number): Promise<() => Promise<Use>> => {
  const profile = profiles()
  if (profile !== undefined) await ask(pid, "profile")
  await ask(pid, "start")
  const before = threadMillis(pid)
  return async () => {
    const after = threadMillis(pid)
    const rssMiB = residentMiB(pid)
    const heap = await ask<HeapUse>(pid, "stop")
    const saved = profile === undefined ? undefined : await ask<{ file: string }>(pid, `save ${profile}`)
    const threads = Object.fromEntries(
      Object.entries(after).map(([name, millis]) => [name, millis - (before[name] ?? 0)])
    )
    return {
      cpuMillis: Object.values(threads).reduce((sum, one) => sum + one, 0),
      threads,
      rssMiB,
      ...(heap === undefined ? {} : { heap }),
      ...(saved === undefined ? {} : { profile: saved.file })
    }
  }
}

/** Runs the work and answers with what the process used meanwhile. */
export const metered = async <A>(
  pid: number,
  work: () => Promise<A>
): Promise<{ readonly result: A; readonly use: Use }> => {
  const stop = await startMeter(pid)
  const result = await work()
  return { result, use: await stop() }
}

const sum = (one: Use, other: Use): Use => ({
  ...other,
  cpuMillis: one.cpuMillis + other.cpuMillis,
  threads: Object.fromEntries(
    Object.entries(other.threads).map(([name, millis]) => [name, millis + (one.threads[name] ?? 0)])
  ),
  ...(one.heap === undefined || other.heap === undefined
    ? {}
    : {
        heap: {
          collections: one.heap.collections + other.heap.collections,
          gcMillis: one.heap.gcMillis + other.heap.gcMillis,
          allocatedBytes: one.heap.allocatedBytes + other.heap.allocatedBytes
        }
      })
})

/** The finding of one part of a window: the work done in it, in which time. */
export interface PartResult<A> {
  readonly result: A
  readonly work: number
  readonly elapsedMillis: number
  /** of other processes under test in that time, which count as the metered one's own does */
  readonly otherCpuMillis?: number
}

/** A part of a load that goes on by itself: the growth of a count in so many milliseconds. */
export const grownIn = async (
  millis: number,
  count: () => Promise<number>
): Promise<PartResult<undefined>> => {
  const [before, start] = [await count(), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, millis))
  const work = (await count()) - before
  return { result: undefined, work, elapsedMillis: performance.now() - start }
}

/** A window that was measured in parts. */
export interface MeteredParts<A> {
  readonly results: ReadonlyArray<A>
  readonly parts: ReadonlyArray<Part>
  /** of all parts together */
  readonly work: number
  readonly elapsedMillis: number
  readonly cpuMillis: number
  readonly use: Use
}

/** Measures a window in parts, each of which begins on both sides at a time. */
export const meteredInParts = async <A>(
  { meet, parts: count, windowMillis }: Pick<CaseContext, "meet" | "parts" | "windowMillis">,
  pid: number,
  part: (millis: number) => Promise<PartResult<A>>
): Promise<MeteredParts<A>> => {
  const results: Array<A> = []
  const parts: Array<Part> = []
  let use: Use | undefined
  while (parts.length < count) {
    await meet(true)
    const measured = await metered(pid, () => part(windowMillis / count))
    const { elapsedMillis, otherCpuMillis = 0, result, work } = measured.result
    results.push(result)
    parts.push({ work, elapsedMillis, cpuMillis: measured.use.cpuMillis + otherCpuMillis })
    use = use === undefined ? measured.use : sum(use, measured.use)
  }
  if (use === undefined) throw new Error("a window has at least one part")
  const total = (figure: keyof Part): number => parts.reduce((all, one) => all + one[figure], 0)
  return {
    results,
    parts,
    work: total("work"),
    elapsedMillis: total("elapsedMillis"),
    cpuMillis: total("cpuMillis"),
    use
  }
}
