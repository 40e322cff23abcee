import { createHash } from "node:crypto"
import { open } from "node:fs/promises"
import { join } from "node:path"
import { type Upload, upload } from "#bench/files/Transfers.ts"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { collectGarbage, metered, probed } from "#bench/harness/Meter.ts"
import { descendants, residentMiB } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import { newKey, newProject } from "./Stage.ts"

const mib = 1024 * 1024

const bytesOf = (context: CaseContext): number => sized(context, { tiny: 4 * mib, full: 2048 * mib })

/** As much of it, at a time, as resident memory is looked at. */
const lookMillis = 20

/** Runs work, and measures the most resident memory of a process beyond that before. */
const watched = async (pid: number, work: () => Promise<void>) => {
  await collectGarbage(pid)
  const before = residentMiB(pid)
  let most = before
  const looking = setInterval(() => (most = Math.max(most, residentMiB(pid))), lookMillis)
  const startedMillis = performance.now()
  const { use } = await metered(pid, work)
  const elapsedMillis = performance.now() - startedMillis
  clearInterval(looking)
  return { elapsedMillis, use, growthMiB: Math.max(most, residentMiB(pid)) - before }
}

const measured = async (
  context: CaseContext,
  pid: number,
  work: (bytes: number) => Promise<void>
): Promise<Measurement> => {
  const bytes = bytesOf(context)
  await work(Math.min(bytes, 64 * mib))
  const { elapsedMillis, growthMiB, use } = await watched(pid, () => work(bytes))
  return {
    work: bytes / 1024,
    elapsedMillis,
    use,
    figures: {
      "MB/s": bytes / 1000 / elapsedMillis,
      "CPU s/GiB": use.cpuMillis / 1000 / (bytes / 1024 ** 3),
      "RSS growth, MiB": growthMiB
    }
  }
}

/** Writes a new file of so many bytes, hashes a block while it is written, and waits until all is on the disk. */
const writeAndHash = async (directory: string, bytes: number): Promise<void> => {
  const file = await open(join(directory, "written"), "w")
  const hash = createHash("sha256")
  const block = Buffer.alloc(mib, 97)
  for (let at = 0; at < bytes; at += block.length) {
    const writing = file.write(block, 0, Math.min(block.length, bytes - at), at)
    hash.update(block)
    await writing
  }
  await file.datasync()
  await file.close()
  hash.digest("hex")
}

/** The limit: no socket, no key, no quota, no row. */
export const written = (context: CaseContext): Promise<Measurement> => {
  move(process.pid, serverCore)
  return measured(context, process.pid, (bytes) => writeAndHash(context.directory, bytes))
}

const attachment = (key: string, bytes: number): Upload => ({
  before:
    `POST /api/v1/attachments?filename=a.bin HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Length: ${bytes}\r\n\r\n`,
  after: "",
  bytes
})

/** One raw upload through the whole server. */
export const uploaded = async (context: CaseContext): Promise<Measurement> => {
  const server = await startServer({ env: { ROOMS: "accounts,notify", ...probed() } })
  try {
    for (const pid of descendants(server.pid())) move(pid, clientCore)
    move(server.pid(), serverCore)
    const given = { url: server.url, adminKey: server.adminKey() }
    const key = await newKey(given, await newProject(given))
    const port = Number(new URL(server.url).port)
    return await measured(context, server.pid(), async (bytes) => {
      const { status, text } = await upload(port, attachment(key, bytes))
      if (status !== 200) throw new Error(`answered ${status} ${text}`)
    })
  } finally {
    await server.dispose()
  }
}
