import { once } from "node:events"
import { fstatSync } from "node:fs"
import { setTimeout as after } from "node:timers/promises"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { UsageProblem } from "../config/UsageProblem.ts"

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
