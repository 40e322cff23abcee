import { Socket } from "node:net"
import { Worker } from "node:worker_threads"
import { failureOf, type JobAnswer, type JobAsk, type JobFailure } from "../Job.ts"
import { FrameReader, frameOf } from "../JobFrames.ts"

/**
 * The process of a worker: a thread that runs jobs, and this one, which hears the parent all the while. When the parent is
 * gone the process is, too, whatever its job does.
 */
const parent = new Socket({ fd: 3 })

const thread = new Worker(new URL("../JobThread.ts", import.meta.url), {
  resourceLimits: { maxOldGenerationSizeMb: Number(process.argv[2]) },
  env: {}
})

const die = (): void => void process.kill(process.pid, "SIGKILL")

const say = (answer: JobAnswer, said: () => void = () => undefined): void => {
  parent.cork()
  const parts = frameOf(answer)
  for (const part of parts.slice(0, -1)) parent.write(part)
  parent.write(parts.at(-1) ?? "", said)
  parent.uncork()
}

let last: JobFailure = { reason: "failed", problem: "the job ended its thread" }

thread.on("message", (answer: JobAnswer) => say(answer))
thread.on("error", (error) => {
  last = failureOf(error)
})
thread.on("exit", () => say({ _tag: "Ended", ...last }, die))

const bytesOf = ({ ask }: JobAsk): ReadonlyArray<ArrayBuffer> =>
  typeof ask === "object" && ask !== null
    ? Object.values(ask).flatMap((value) =>
        value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : []
      )
    : []

const reader = new FrameReader((value) => {
  const ask = value as JobAsk
  thread.postMessage(ask, [...bytesOf(ask)])
}, Infinity)

parent.on("data", (piece) => reader.push(piece))
parent.on("error", die)
parent.on("close", die)
