// Plain JavaScript, for the launcher too, which an older Node runs.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import process from "node:process"

/** Variables that hold no secret. They stay in their place: libraries and runtimes point to them there. */
const harmless =
  /^(PATH|HOME|PWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TERM|TERM_PROGRAM|COLORTERM|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|TMPDIR|TZ|XDG_\w+|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR)$/

/** The variables of the memory that /proc shows, with their places in it: `[name, value, start, length]`. */
const variables = () => {
  const bytes = readFileSync("/proc/self/environ")
  const found = []
  for (let start = 0, end; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(0, start)
    if (end < 0) end = bytes.length
    const text = bytes.toString("utf8", start, end)
    const at = text.indexOf("=")
    if (at > 0) found.push([text.slice(0, at), text.slice(at + 1), start, end - start])
  }
  return found
}

/** Whether /proc shows none but harmless variables of this process. */
export const isEnvironmentHidden = () =>
  process.platform === "linux" && variables().every(([name]) => harmless.test(name))

/**
 * Empties the memory in which this process was handed its environment, but for variables without secrets. A command
 * without a sandbox would read the keys and tokens of it in /proc/PPID/environ, which shows that memory and not what is
 * set later. `process.env` stays as it is: its values are copies now. Elsewhere than on Linux nothing is done.
 * Source: proc(5), /proc/PID/environ, and env_start of /proc/PID/stat.
 */
export const hideEnvironment = () => {
  if (process.platform !== "linux") return
  const stat = readFileSync("/proc/self/stat", "latin1")
  // The second field is the program's name in brackets, which may hold any character; the third is the first here.
  const memoryStart = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[50 - 3])
  if (!(memoryStart > 0)) return
  const hidden = variables().filter(([name]) => !harmless.test(name))
  const memory = openSync("/proc/self/mem", "r+")
  try {
    for (const [name] of hidden) delete process.env[name]
    for (const [, , start, length] of hidden)
      writeSync(memory, new Uint8Array(length), 0, length, memoryStart + start)
  } finally {
    closeSync(memory)
    // The values were read from /proc: those of process.env may point to the memory that is emptied.
    for (const [name, value] of hidden) process.env[name] = value
  }
}
