// Plain JavaScript, for the launcher too, which an older Node runs.
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import process from "node:process"

/**
 * Empties the memory in which this process was handed its environment. A command without a sandbox would read the keys
 * and tokens of it in /proc/PPID/environ, which shows that memory and not what is set later. `process.env` stays as it is,
 * but for names and values, which are copies now. Elsewhere than on Linux nothing is done.
 * Source: proc(5), /proc/PID/environ, and env_start and env_end of /proc/PID/stat.
 */
export const hideEnvironment = () => {
  if (process.platform !== "linux") return
  const stat = readFileSync("/proc/self/stat", "latin1")
  // The second field is the program's name in brackets, which may hold any character; the third is the first here.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const start = Number(fields[50 - 3])
  const end = Number(fields[51 - 3])
  if (!(start > 0 && end > start)) return
  const own = { ...process.env }
  const memory = openSync("/proc/self/mem", "r+")
  try {
    for (const name of Object.keys(own)) delete process.env[name]
    writeSync(memory, new Uint8Array(end - start), 0, end - start, start)
  } finally {
    closeSync(memory)
    Object.assign(process.env, own)
  }
}
