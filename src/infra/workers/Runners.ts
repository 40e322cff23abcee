import { spawn } from "node:child_process"
import { Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { endOf } from "#src/infra/process/ChildEnd.ts"
import { childEnvironment } from "#src/infra/process/ChildEnvironment.ts"
import { endThread } from "./EndThread.ts"
import { failureOf, type JobAnswer, type JobKind, type Runner, type RunnerListener } from "./Job.ts"
import { FrameReader, frameOf } from "./JobFrames.ts"

export const startRunner = ({ isolation, memoryMegabytes }: JobKind, listener: RunnerListener): Runner =>
  isolation === "thread" ? threadOf(memoryMegabytes, listener) : processOf(memoryMegabytes, listener)

const threadOf = (heapMegabytes: number, { exited, heard }: RunnerListener): Runner => {
  const worker = new Worker(new URL("./JobThread.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    // A thread reads what strangers wrote: no secret of the server is in its reach by name.
    env: {}
  })
  worker.unref()
  worker.on("message", heard)
  worker.on("error", (error) => heard({ _tag: "Ended", ...failureOf(error) }))
  worker.on("exit", () => exited("the job ended its thread"))
  return {
    post: (ask, transfer) => worker.postMessage(ask, [...transfer]),
    kill: () => endThread(worker)
  }
}

/** Node itself, its threads' stacks, and the frames on their way. */
const ownMegabytes = 128
/** V8's ways to end a process without memory. */
const outOfMemory = new Set(["SIGABRT", "SIGTRAP", "SIGILL"])
const mebibyte = 1024 * 1024

/**
 * A child of its own. RLIMIT_DATA bounds all memory that it writes to: V8's heap limit does not count bytes of buffers. A
 * shell sets it, since Node cannot; where the system has no such limit, that of the heap remains.
 */
const processOf = (memoryMegabytes: number, { exited, heard }: RunnerListener): Runner => {
  const megabytes = memoryMegabytes + ownMegabytes
  // Close to its heap's limit V8 does little else than to look for garbage: the system's comes first.
  const heapMegabytes = 1.5 * megabytes
  const child = spawn(
    "/bin/sh",
    [
      "-c",
      `ulimit -c 0; ulimit -d ${megabytes * 1024} 2>/dev/null; exec "$0" "$@"`,
      process.execPath,
      fileURLToPath(new URL("./child/main.ts", import.meta.url)),
      String(heapMegabytes)
    ],
    { env: childEnvironment(), stdio: ["ignore", "ignore", "ignore", "pipe"] }
  )
  child.unref()
  const wire = child.stdio[3]
  if (!(wire instanceof Socket)) throw new Error("a worker's process has no wire")
  wire.unref()
  const reader = new FrameReader((value) => heard(value as JobAnswer), memoryMegabytes * mebibyte)
  const kill = (): void => void child.kill("SIGKILL")
  wire.on("data", (piece: Uint8Array) => {
    try {
      reader.push(piece)
    } catch (error) {
      heard({ _tag: "Ended", ...failureOf(error) })
      kill()
    }
  })
  wire.on("error", kill)
  // Its last words may come after its end.
  const silent = new Promise((resolve) => wire.once("close", resolve))
  const end = async (): Promise<void> => {
    const how = await endOf(child)
    await silent
    if (outOfMemory.has(how)) heard({ _tag: "Ended", reason: "memory", problem: how })
    exited(`the job's process ended (${how})`)
  }
  const ended = end()
  return {
    post: (ask) => {
      const parts = frameOf(ask)
      wire.cork()
      for (const part of parts) wire.write(part)
      wire.uncork()
    },
    kill: async () => {
      kill()
      await ended
    }
  }
}
