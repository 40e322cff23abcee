import { parentPort } from "node:worker_threads"
import type { JobAnswer, JobAsk, JobModule } from "./WorkerPool.ts"

const modules = new Map<string, Promise<JobModule>>()

const moduleAt = (url: string): Promise<JobModule> => {
  const known = modules.get(url) ?? import(url).then((module: { readonly job: JobModule }) => module.job)
  modules.set(url, known)
  return known
}

const answer = (message: JobAnswer, transfer: ReadonlyArray<ArrayBuffer> = []): void =>
  parentPort?.postMessage(message, [...transfer])

/** One job at a time: the pool sends the next when this one has answered. */
parentPort?.on("message", ({ ask, module }: JobAsk) => {
  const made = moduleAt(module).then((job) => job(ask))
  made.then(
    ({ answer: result, transfer }) => answer({ _tag: "Done", result }, transfer),
    (cause: unknown) =>
      answer({ _tag: "Failed", problem: cause instanceof Error ? cause.message : String(cause) })
  )
})
