import { setTimeout as pause } from "node:timers/promises"
import { metered } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, sized } from "#bench/harness/Suite.ts"
import { slabBytes, tcpBufferBytes } from "./KernelMemory.ts"
import { type ServerName, staged } from "./Stages.ts"

const sessionsOf = (context: CaseContext): number => sized(context, { tiny: 24, quick: 3_000, full: 19_000 })

/**
 * As many sessions as a process of 20,000 files can have, attached as fast as they come and then idle: the memory each
 * adds to the server's, collected before and after, and to the kernel's. Both ends of a connection are on this machine,
 * so that the kernel's part is halved.
 */
export const idleSockets = (name: ServerName) =>
  staged(name, sessionsOf, async ({ context, load, server }) => {
    const sessions = sessionsOf(context)
    const sockets = load(sessions)
    await sockets.progress()
    const used = await server.collectGarbage()
    const [rss, slab, buffers] = [residentMiB(server.pid()), slabBytes(), tcpBufferBytes()]
    const start = performance.now()
    const { result: attachedAt, use } = await metered(server.pid(), () => {
      sockets.tell({ do: "attach" })
      return sockets.until(({ attached }) => attached === sessions, 120_000)
    })
    const elapsedMillis = attachedAt - start
    await pause(sized(context, { tiny: 10, quick: 1_000, full: 5_000 }))
    const rssIdle = residentMiB(server.pid())
    const usedIdle = await server.collectGarbage()
    const each = (bytes: number): number => bytes / sessions
    const mib = 1024 * 1024
    return {
      work: sessions,
      elapsedMillis,
      use,
      figures: {
        "V8 B/socket": each(usedIdle - used),
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
