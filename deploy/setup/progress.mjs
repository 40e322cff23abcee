import { readFileSync } from "node:fs"
import process from "node:process"

/** A set-up step that cannot go on, with advice for the user. */
export class SetupFailed extends Error {
  constructor(message, advice) {
    super(message)
    this.advice = advice
  }
}

export const say = (line) => process.stdout.write(`${line}\n`)

const megabytes = (bytes) => `${Math.round(bytes / 1_000_000)} MB`

/** A number of `/proc/PID/io`, where the system tells (Linux); undefined elsewhere or when the process is gone. */
const bytesOf = (pid, name) => {
  try {
    return Number(new RegExp(`^${name}: (\\d+)`, "m").exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1])
  } catch {
    return undefined
  }
}

/** Bytes that a process has written so far, to files and connections. */
const bytesWritten = (pid) => bytesOf(pid, "wchar")

/** Bytes that a process has read and written so far. */
export const bytesMoved = (pid) => {
  const [read, written] = [bytesOf(pid, "rchar"), bytesWritten(pid)]
  return read === undefined || written === undefined ? undefined : read + written
}

/**
 * Shows that a long step is alive: one line that is rewritten on a terminal, a line every five seconds elsewhere.
 * Returns a function that ends it with a closing line.
 */
export const showProgress = (label, pidOf) => {
  const started = Date.now()
  const terminal = process.stdout.isTTY === true
  const describe = () => {
    const written = bytesWritten(pidOf())
    const seconds = Math.round((Date.now() - started) / 1000)
    return `${label} … ${seconds} s${written === undefined ? "" : `, ${megabytes(written)} written`}`
  }
  if (!terminal) say(`${label} …`)
  const timer = setInterval(
    () => (terminal ? process.stdout.write(`\r\u001b[K${describe()}`) : say(describe())),
    terminal ? 200 : 5_000
  )
  return (closing) => {
    clearInterval(timer)
    if (terminal) process.stdout.write("\r\u001b[K")
    say(`${label}: ${closing} in ${((Date.now() - started) / 1000).toFixed(1)} s`)
  }
}
