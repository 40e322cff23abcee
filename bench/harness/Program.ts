import { spawn } from "node:child_process"
import { failIfAborted, Interrupted, unlessAborted, wasInterrupted } from "./Interrupt.ts"

interface ProgramOptions {
  readonly cwd: string
  /** ends the program, and the wait for it, as soon as it fires */
  readonly signal: AbortSignal | undefined
  /** the parts of its output that go to the terminal; by default none */
  readonly shows?: "errors" | "all"
}

interface ProgramEnd {
  /** its exit code, or the signal that ended it */
  readonly end: number | string | null
  /** its stderr, unless that was shown */
  readonly errors: string
}

/** Runs a program of the set-up to its end. The loop goes on meanwhile: an interrupt that comes ends both. */
export const runProgram = async (
  file: string,
  args: ReadonlyArray<string>,
  { cwd, shows, signal }: ProgramOptions
): Promise<ProgramEnd> => {
  failIfAborted(signal)
  const child = spawn(file, args, {
    cwd,
    stdio: ["ignore", shows === "all" ? "inherit" : "ignore", shows === undefined ? "pipe" : "inherit"]
  })
  let errors = ""
  child.stderr?.on("data", (chunk) => (errors = (errors + String(chunk)).slice(-100_000)))
  const ended = Promise.withResolvers<ProgramEnd["end"]>()
  child.once("error", ended.reject)
  child.once("close", (code, killedBy) => ended.resolve(code ?? killedBy))
  try {
    const end = await unlessAborted(signal, ended.promise)
    if (signal !== undefined && (await wasInterrupted(signal))) throw new Interrupted()
    return { end, errors }
  } finally {
    child.kill()
  }
}

/** The same for a program that has to succeed: the error has its last words. */
export const needProgram = async (
  file: string,
  args: ReadonlyArray<string>,
  options: ProgramOptions
): Promise<void> => {
  const { end, errors } = await runProgram(file, args, options)
  if (end !== 0) throw new Error(`${file} ${args[0] ?? ""} ended with ${end}\n${errors}`.trim())
}
