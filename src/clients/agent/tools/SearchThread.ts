import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import type { GlobParams, GrepParams, ToolErrorCode } from "#schemas/agents/ToolCall.ts"
import { endThread } from "#src/infra/workers/EndThread.ts"
import type { JailHandle } from "../boundary/Jail.ts"
import { linuxJail } from "../boundary/LinuxJail.ts"
import { portableJail } from "../boundary/PortableJail.ts"
import type { Protection } from "../boundary/ProtectedPaths.ts"
import { failureOf } from "./FailureOf.ts"
import { globFiles, grepFiles } from "./SearchFiles.ts"
import { ToolFailure } from "./ToolFailure.ts"

/**
 * Searches run in a thread of their own: a regular expression or a glob may be made to take for ever, as may one in a
 * .gitignore, and a thread can be ended where a function cannot. A build that puts the client into a single file starts
 * that same file as the thread, so the client's main part has to do nothing where `isMainThread` is false.
 */
export type Search =
  | { readonly method: "fs.glob"; readonly params: typeof GlobParams.Type }
  | { readonly method: "fs.grep"; readonly params: typeof GrepParams.Type }

interface Order {
  readonly signalboxSearch: Search
  readonly jail: JailHandle
  readonly protection: Protection
}
type Answer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: ToolErrorCode; readonly message: string } }

const isOrder = (data: unknown): data is Order =>
  typeof data === "object" && data !== null && "signalboxSearch" in data

const answer = ({ signalboxSearch: search, jail: handle, protection }: Order): Answer => {
  const jail = handle.kind === "linux" ? linuxJail(handle.root, handle.fd) : portableJail(handle.root)
  const workspace = { jail, protection }
  try {
    const result =
      search.method === "fs.glob" ? globFiles(workspace, search.params) : grepFiles(workspace, search.params)
    return { result }
  } catch (error) {
    const { code, message } = failureOf(error, search.params.path ?? ".")
    return { error: { code, message } }
  } finally {
    jail.close()
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port between threads has no origin
if (!isMainThread && isOrder(workerData)) parentPort?.postMessage(answer(workerData))

/** Memory of one search; above it the thread is ended. */
const resourceLimits = { maxOldGenerationSizeMb: 256 }

/** Searches, for so long at most. */
export const searchInThread = (
  search: Search,
  { jail, protection }: Omit<Order, "signalboxSearch">,
  { millis, signal }: { readonly millis: number; readonly signal: AbortSignal }
): Promise<unknown> => {
  const order: Order = { signalboxSearch: search, jail, protection }
  const worker = new Worker(new URL(import.meta.url), { workerData: order, resourceLimits, env: {} })
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const timer = setTimeout(
    () => reject(new ToolFailure("timeout", `The search took longer than ${millis / 1000} s`)),
    millis
  )
  const cancel = (): void => reject(new ToolFailure("cancelled", "The search was cancelled"))
  signal.addEventListener("abort", cancel, { once: true })
  worker.once("message", (given: Answer) =>
    "result" in given ? resolve(given.result) : reject(new ToolFailure(given.error.code, given.error.message))
  )
  worker.once("error", (error) =>
    reject(new ToolFailure("exec_failed", `The search failed: ${String(error)}`))
  )
  worker.once("exit", () => reject(new ToolFailure("exec_failed", "The search ended without an answer")))
  return promise.finally(async () => {
    clearTimeout(timer)
    signal.removeEventListener("abort", cancel)
    await endThread(worker)
  })
}
