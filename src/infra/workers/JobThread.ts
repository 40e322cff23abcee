import { parentPort } from "node:worker_threads"
import type { JobAnswer, JobAsk, JobModule } from "./Job.ts"

const modules = new Map<string, Promise<JobModule>>()

const moduleAt = (url: string): Promise<JobModule> => {
  const known = modules.get(url) ?? import(url).then((module: { readonly job: JobModule }) => module.job)
  modules.set(url, known)
  return known
}

const say = (message: JobAnswer, transfer: ReadonlyArray<ArrayBuffer> = []): void =>
  parentPort?.postMessage(message, [...transfer])

/** The words of V8 for an array of bytes that there is no memory for. Its heap has a limit that ends the thread. */
const isMemory = (cause: unknown): boolean =>
  cause instanceof RangeError && /allocation failed/i.test(cause.message)

/** One job at a time: the pool sends the next when this one has answered. */
parentPort?.on("message", ({ ask, module }: JobAsk) => {
  const made = moduleAt(module).then((job) => {
    say({ _tag: "Begun" })
    return job(ask)
  })
  // An answer that cannot be cloned is a failure, too.
  made
    .then(({ answer: result, transfer }) => say({ _tag: "Done", result }, transfer))
    .catch((cause: unknown) =>
      say({
        _tag: "Failed",
        reason: isMemory(cause) ? "memory" : "failed",
        problem: cause instanceof Error ? cause.message : String(cause)
      })
    )
})
