import { setTimeout as pause } from "node:timers/promises"
import { cpuMillis, residentMiB } from "#bench/harness/ProcessUse.ts"
import { slabBytes, tcpBufferBytes } from "./KernelMemory.ts"
import { type ServerName, staged } from "./Stages.ts"

const sessionsOf = (quick: boolean): number => (quick ? 24 : 19_000)

/**
 * As many sessions as a process of 20,000 files can have, attached as fast as they come and then idle: what each takes
 * of the server's memory above what it had without any, garbage left out before and after, and of the kernel's. Both
 * ends of a connection are on this machine, so that the kernel's part is halved.
 */
export const idleSockets = (name: ServerName) =>
  staged(name, sessionsOf, async ({ context: { quick }, load, server }) => {
    const sessions = sessionsOf(quick)
    const sockets = load(sessions)
    await sockets.progress()
    await server.collectGarbage()
    const [rss, slab, buffers, cpu] = [
      residentMiB(server.pid()),
      slabBytes(),
      tcpBufferBytes(),
      cpuMillis(server.pid())
    ]
    const start = performance.now()
    sockets.tell({ do: "attach" })
    const elapsedMillis = (await sockets.until(({ attached }) => attached === sessions, 120_000)) - start
    const used = cpuMillis(server.pid()) - cpu
    await pause(quick ? 10 : 5_000)
    const rssIdle = residentMiB(server.pid())
    await server.collectGarbage()
    const each = (bytes: number): number => bytes / sessions
    const mib = 1024 * 1024
    return {
      work: sessions,
      elapsedMillis,
      cpuMillis: used,
      figures: {
        "RSS B/socket": each((residentMiB(server.pid()) - rss) * mib),
        "kernel slab B/socket": each(slabBytes() - slab) / 2,
        "empty MiB": rss
      },
      details: {
        rssWithGarbageBytes: each((rssIdle - rss) * mib),
        tcpBufferBytes: each(tcpBufferBytes() - buffers) / 2
      }
    }
  })
