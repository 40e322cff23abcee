import { setTimeout as after } from "node:timers/promises"
import type { Ready } from "#schemas/agents/ServerFrame.ts"
import type { Client } from "../connection/Client.ts"
import { ConnectionClosed } from "../connection/ConnectionClosed.ts"
import { codeOfClosed, codeOfDone, exitCodes } from "../ExitCodes.ts"
import type { Reporter } from "./Reporter.ts"
import { once } from "node:events"
import { fstatSync } from "node:fs"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { UsageProblem } from "../config/UsageProblem.ts"

/** How long an aborted prompt may take to end. */
const abortMillis = 5_000
/** A session that says nothing for so long after it was attached, and works on nothing, has nothing to say. */
const quietMillis = 1_000

interface PrintOptions {
  readonly client: Client
  readonly reporter: Reporter
  /** The prompt, made when the session is there: files may have to be uploaded. Undefined: wait for the running one. */
  readonly prompt:
    | (() => Promise<{ readonly text: string; readonly images: ReadonlyArray<string> }>)
    | undefined
  /** aborted with the exit code as its reason */
  readonly stop: AbortSignal
}

interface Watch {
  /** the exit code of a prompt; of any that ends where no id is given */
  readonly ended: (promptId?: string) => Promise<number>
  readonly quiet: () => Promise<void>
  readonly unsubscribe: () => void
}

/** Keeps the outcomes of prompts: one can end before it is awaited. */
const watch = ({ client, reporter }: PrintOptions): Watch => {
  const codes = new Map<string, number>()
  const waiting = new Set<() => void>()
  let closed: number | undefined
  let heard = performance.now()
  const unsubscribe = client.events.subscribe((event) => {
    heard = performance.now()
    reporter.take(event)
    if (event.type === "frame" && event.frame.type === "prompt.done") {
      codes.set(event.frame.id, codeOfDone(event.frame))
    } else if (event.type === "frame" && event.frame.type === "error" && event.frame.id !== undefined) {
      codes.set(event.frame.id, exitCodes.error)
    } else if (event.type === "link" && event.state === "closed") closed = codeOfClosed(event.reason)
    else return
    for (const wake of waiting) wake()
  })
  const ended = async (promptId?: string): Promise<number> => {
    for (;;) {
      const code = promptId === undefined ? [...codes.values()].at(-1) : codes.get(promptId)
      if (code !== undefined) return code
      if (closed !== undefined) return closed
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          waiting.delete(wake)
          resolve()
        }
        waiting.add(wake)
      })
    }
  }
  const quiet = async (): Promise<void> => {
    while (performance.now() - heard < quietMillis) await after(quietMillis - (performance.now() - heard))
  }
  return { ended, quiet, unsubscribe }
}

/** Works one prompt off. Gives the exit code; the client is closed then. */
export const runPrint = async (options: PrintOptions): Promise<number> => {
  const { client, reporter, stop } = options
  const watched = watch(options)
  const stopped = new Promise<number>((resolve) => {
    stop.addEventListener("abort", () => resolve(Number(stop.reason)), { once: true })
  })
  try {
    const worked = work(options, watched)
    const code = await Promise.race([worked, stopped])
    if (!stop.aborted) return code
    client.abort({ clearQueue: true })
    if (client.activePrompt !== undefined) {
      await Promise.race([watched.ended(client.activePrompt), after(abortMillis, undefined, { ref: false })])
    }
    return code
  } catch (error) {
    reporter.note(error instanceof Error ? error.message : String(error))
    return exitCodes.error
  } finally {
    await client.bye()
    watched.unsubscribe()
    reporter.ended()
  }
}

const work = async ({ client, prompt, reporter }: PrintOptions, watched: Watch): Promise<number> => {
  let ready: Ready
  try {
    ready = await client.start()
  } catch (error) {
    // The reporter has it as an event.
    if (!(error instanceof ConnectionClosed)) throw error
    return codeOfClosed(error.reason)
  }
  reporter.started(ready)
  if (ready.activePrompt !== undefined) {
    if (prompt !== undefined) reporter.note("The prompt of before still runs; yours is next")
    const code = await watched.ended(ready.activePrompt)
    if (prompt === undefined) return code
  } else if (prompt === undefined) {
    return Promise.race([watched.ended(), watched.quiet().then(() => exitCodes.completed)])
  }
  const { images, text } = await prompt()
  return watched.ended(client.prompt(text, images))
}

/** A program that starts this one may leave its input open and never write. */
const silentMillis = 2_000

/** Whether there is something to read; a terminal and a device such as /dev/null are left alone. */
const hasInput = async (): Promise<boolean> => {
  const stats = fstatSync(0)
  // Input piped in by a shell is awaited without a time limit.
  if (stats.isFIFO() || stats.isFile()) return true
  if (!stats.isSocket()) return false
  const isThere = once(process.stdin, "readable").then(() => true)
  const isSomething = await Promise.race([isThere, after(silentMillis, false)])
  // An input that is not read any more does not keep the program from ending.
  if (!isSomething) process.stdin.destroy()
  return isSomething
}

/** All that is piped in. Throws `UsageProblem` where it is longer than a prompt. */
export const readPiped = async (): Promise<string> => {
  if (!(await hasInput())) return ""
  const pieces: Array<Buffer> = []
  let bytes = 0
  for await (const piece of process.stdin) {
    const buffer = Buffer.from(piece)
    bytes += buffer.length
    if (bytes > agentLimits.promptBytes) {
      throw new UsageProblem(`What is piped in is longer than ${agentLimits.promptBytes} bytes`)
    }
    pieces.push(buffer)
  }
  return Buffer.concat(pieces).toString("utf8")
}
