import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { LedgerProcessOptions } from "./LedgerProcess.ts"

const program = join(import.meta.dirname, "LedgerProcess.ts")

/** A process with a ledger of its own, that calls on command. */
export interface LedgerProcess {
  /** pico-USD by the id of the call: settled so far */
  readonly charges: ReadonlyMap<string, bigint>
  readonly refused: () => number
  readonly ready: Promise<void>
  readonly go: () => void
  /** resolves when so many calls were settled */
  readonly until: (calls: number) => Promise<void>
  readonly done: Promise<void>
  /** SIGKILL; resolves when all that it wrote has been read */
  readonly kill: () => Promise<void>
}

export const startLedgerProcess = (
  options: LedgerProcessOptions
): Effect.Effect<LedgerProcess, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) => {
      const charges = new Map<string, bigint>()
      const heard = new Set<() => void>()
      let isReady = false
      let refused: number | undefined
      let hasEnded = false
      let rest = ""
      child.stdout.setEncoding("latin1").on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) {
          const [first = "", second = ""] = line.split(" ")
          if (first === "ready") isReady = true
          else if (first === "done") refused = Number(second)
          else charges.set(first, BigInt(second))
        }
        for (const wake of heard) wake()
      })
      child.once("close", () => {
        hasEnded = true
        for (const wake of heard) wake()
      })
      const when = async (isTrue: () => boolean): Promise<void> => {
        while (!isTrue()) {
          if (hasEnded) throw new Error("the process with a ledger has ended by itself")
          await new Promise<void>((resolve) => {
            const wake = (): void => {
              heard.delete(wake)
              resolve()
            }
            heard.add(wake)
          })
        }
      }
      return {
        charges,
        refused: () => refused ?? 0,
        get ready() {
          return when(() => isReady)
        },
        go: () => void child.stdin.write("go\n"),
        until: (calls) => when(() => charges.size >= calls),
        get done() {
          return when(() => refused !== undefined)
        },
        kill: async () => {
          const closed = once(child, "close")
          child.kill("SIGKILL")
          await closed
        }
      }
    }
  )
