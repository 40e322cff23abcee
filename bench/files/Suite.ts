import { setTimeout as sleep } from "node:timers/promises"
import { closedLoop } from "#bench/harness/ClosedLoop.ts"
import { unavailableUws } from "#bench/harness/ForkedServer.ts"
import { answered, load, type LoadOptions, startLoad } from "#bench/harness/HttpLoad.ts"
import { collectGarbage, metered } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import {
  type BenchCase,
  type BenchSuite,
  type CaseContext,
  fullOnly,
  type Measurement,
  sized
} from "#bench/harness/Suite.ts"
import {
  type FileServer,
  type Ours,
  reach,
  type ServerName,
  smallBytes,
  startFiles,
  startOurs,
  unavailableNginx
} from "./Servers.ts"
import { download, slowWriters, stalledReaders, upload } from "./Transfers.ts"

const mib = 1024 * 1024

type Context = CaseContext<Ours | undefined>
type Sized = Pick<Context, "size">
type Case = BenchCase<Ours | undefined>
type Suite = BenchSuite<Ours | undefined>
type Run = (context: Context, server: FileServer) => Promise<Measurement>

const largeBytes = (context: Sized): number =>
  sized(context, { tiny: 4 * mib, quick: 512 * mib, full: 1024 * mib })

/** Transfers that are made one after the other; the first one warms up. */
const transfers = (context: Context): number => sized(context, { tiny: 1, quick: 2, full: 3 })

/** One server of ours for all cases of a run that is not full: starting one takes longer than most of them do. */
const stage: NonNullable<Suite["stage"]> = async (context) => {
  const isShared = context.size !== "full" && context.cases.some((name) => name.startsWith("ours"))
  if (!isShared || unavailable("ours")() !== undefined)
    return { given: undefined, leave: async () => undefined }
  const { ours, stop } = await startOurs(largeBytes(context))
  return { given: ours, leave: stop }
}

/** As large a file as no socket holds; the memory that 1 GiB left behind would hide what a crowd takes. */
const crowdBytes = (context: Sized): number => sized(context, { tiny: 4 * mib, full: 64 * mib })

const served =
  (name: ServerName, run: Run, bytes = largeBytes) =>
  async (context: Context): Promise<Measurement> => {
    const { given } = context
    if (name === "ours" && given !== undefined) return run(context, reach(given))
    const server = await startFiles(name, { directory: context.directory, largeBytes: bytes(context) })
    try {
      return await run(context, server)
    } finally {
      await server.stop()
    }
  }

/** Bodies of some size, one at a time. */
const transferring = async (
  context: Context,
  server: FileServer,
  bytes: number,
  transfer: () => Promise<{ readonly status: number }>
): Promise<Measurement> => {
  const once = async (): Promise<void> => {
    const { status } = await transfer()
    if (status < 200 || status > 299) throw new Error(`answered ${status}`)
  }
  await once()
  const startedMillis = performance.now()
  const { use } = await metered(server.pid, async () => {
    for (let made = 0; made < transfers(context); made++) await once()
  })
  const elapsedMillis = performance.now() - startedMillis
  const kib = (transfers(context) * bytes) / 1024
  return {
    work: kib,
    elapsedMillis,
    use,
    figures: { "MB/s": (kib * 1.024) / elapsedMillis, "CPU s/GiB": use.cpuMillis / 1000 / (kib / mib) }
  }
}

const got = (context: Context, server: FileServer): Promise<Measurement> =>
  transferring(context, server, largeBytes(context), () => download(server.port, server.large))

const put = (context: Context, server: FileServer): Promise<Measurement> => {
  const whole = server.upload(largeBytes(context))
  return transferring(context, server, largeBytes(context), () => upload(server.port, whole))
}

/** The archive of a directory of files of one size. */
const archived =
  (files: (context: Context) => number, bytesEach: number) =>
  async (context: Context, server: FileServer): Promise<Measurement> => {
    const count = files(context)
    const request = await server.archive(count, bytesEach)
    const measured = await transferring(context, server, count * bytesEach, () =>
      download(server.port, request)
    )
    const perSecond = (transfers(context) * count * 1000) / measured.elapsedMillis
    return { ...measured, figures: { ...measured.figures, "entries/s": perSecond } }
  }

const largeArchive = archived((context) => sized(context, { tiny: 4, quick: 250, full: 1_000 }), mib)
const longArchive = archived((context) => sized(context, { tiny: 50, quick: 10_000, full: 100_000 }), 1024)

/** Bodies of 4 KiB, over 64 connections. */
const smallOnes =
  (requestsOf: (server: FileServer) => LoadOptions["requests"]) =>
  async (context: Context, server: FileServer): Promise<Measurement> => {
    const connections = sized(context, { tiny: 4, full: 64 })
    const load = await startLoad({ port: server.port, connections, requests: requestsOf(server) })
    try {
      const measured = await closedLoop(context, { pid: server.pid, load, status: "200" })
      const perSecond = (measured.work * 1000) / measured.elapsedMillis
      const figures = { ...measured.figures, "requests/s": perSecond }
      return { ...measured, work: (measured.work * smallBytes) / 1024, figures }
    } finally {
      await load.stop()
    }
  }

/** Downloads of 4 KiB at a steady rate, while four uploads come as fast as they are taken. */
const besideUploads = async (context: Context, server: FileServer): Promise<Measurement> => {
  const whole = server.upload(sized(context, { tiny: mib, quick: 64 * mib, full: 256 * mib }))
  const over = new AbortController()
  let uploaded = 0
  const uploading = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      await upload(server.port, whole)
      uploaded += whole.bytes
    }
  })
  const startedMillis = performance.now()
  const { result, use } = await metered(server.pid, () =>
    load({
      port: server.port,
      connections: sized(context, { tiny: 2, full: 16 }),
      durationMillis: context.windowMillis,
      warmUpMillis: context.windowMillis / 5,
      requests: [server.small],
      ratePerSecond: 200
    })
  )
  const elapsedMillis = performance.now() - startedMillis
  over.abort()
  await Promise.all(uploading)
  const { latency, requests } = answered(result, "200")
  return {
    work: (requests * smallBytes) / 1024,
    elapsedMillis,
    use,
    latency,
    figures: { "uploads MB/s": uploaded / 1000 / (performance.now() - startedMillis) }
  }
}

/** Resident memory that a crowd costs, by connection, once its members have been there for a while. */
const crowd =
  (open: (server: FileServer, count: number) => ReturnType<typeof stalledReaders>) =>
  async (context: Context, server: FileServer): Promise<Measurement> => {
    const count = sized(context, { tiny: 20, full: 1_000 })
    // Buffers and code that stay are made before.
    for (const socket of await open(server, 10)) socket.destroy()
    await collectGarbage(server.pid)
    const before = residentMiB(server.pid)
    const startedMillis = performance.now()
    const { result: sockets, use } = await metered(server.pid, async () => {
      const opened = await open(server, count)
      await sleep(sized(context, { tiny: 200, full: 45_000 }))
      return opened
    })
    const elapsedMillis = performance.now() - startedMillis
    const after = residentMiB(server.pid)
    const left = sockets.filter(({ destroyed }) => !destroyed).length
    for (const socket of sockets) socket.destroy()
    if (left < count) throw new Error(`${count - left} of ${count} connections were lost`)
    return { work: count, elapsedMillis, use, figures: { "KiB each": ((after - before) * 1024) / count } }
  }

const readers = crowd((server, count) => stalledReaders(server.port, count, server.large))
const writers = crowd((server, count) => slowWriters(server.port, count, server.upload(100 * mib).before))

const unavailable = (name: ServerName) => (name === "nginx" ? unavailableNginx : unavailableUws)

const cases = (
  group: string,
  short: string,
  names: ReadonlyArray<ServerName>,
  run: Run,
  more: Partial<Case> = {}
): ReadonlyArray<Case> =>
  names.map((name, index) => ({
    name: `${name} (${short})`,
    group,
    ...(index === 0 && names.length > 1 ? { baseline: true } : {}),
    unavailable: unavailable(name),
    run: served(name, run),
    ...(name === "ours" ? { compared: "full" as const, ...more } : {})
  }))

/** With a server of their own, whose memory is theirs. */
const crowded = (group: string, short: string, run: Run): ReadonlyArray<Case> =>
  cases(group, short, ["ours"], run, { run: served("ours", run, crowdBytes) }).map(fullOnly)

const whole: Pick<Case, "run" | "unavailable"> = {
  unavailable: unavailable("ours"),
  run: served("ours", got)
}

export const suite: Suite = {
  name: "files",
  about:
    "shared files, with their key, version and hash, against nginx (sendfile; uploads without hash or sync), and against " +
    "two blocks over uWebSockets.js that know of nothing but the file: 1 GiB (quick: 512 MiB) down, and up with SHA-256 and " +
    "on the disk, 4 KiB down and durably up, archives, small downloads beside uploads, and crowds that stall",
  unit: "KiB or connections",
  rounds: 3,
  stage,
  cases: [
    ...cases("GET of 1 GiB", "down", ["raw uWebSockets.js", "nginx", "ours"], got),
    ...cases("upload of 1 GiB", "up", ["raw uWebSockets.js", "nginx", "ours"], put),
    ...cases(
      "GET of 4 KiB",
      "4 KiB",
      ["nginx", "raw uWebSockets.js", "ours"],
      smallOnes(({ small }) => [small]),
      {
        compared: "always",
        sideBySide: true
      }
    ),
    ...cases(
      "durable uploads of 4 KiB",
      "4 KiB up",
      ["raw uWebSockets.js", "ours"],
      smallOnes(({ smallUploads }) => smallUploads),
      { compared: "always", sideBySide: true }
    ),
    { ...whole, name: "ours (plain)", group: "archive of 1,000 x 1 MiB", baseline: true },
    ...cases("archive of 1,000 x 1 MiB", "archive", ["ours"], largeArchive),
    ...cases("archive of 100,000 x 1 KiB", "long archive", ["ours"], longArchive),
    ...cases("GET of 4 KiB beside four uploads", "beside uploads", ["ours"], besideUploads),
    ...crowded("readers that take nothing", "stalled", readers),
    ...crowded("writers of 5 KB/s", "slow", writers)
  ]
}
