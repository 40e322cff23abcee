import { setTimeout as pause } from "node:timers/promises"

/** Given to a process that is asked for `collectGarbage` later; it takes a free port of the loopback. */
export const inspectable = "--inspect=127.0.0.1:0"

/**
 * Has V8 throw away what nobody can reach, so that memory says what is kept. `output`: what the process printed, its
 * inspector's address first. A heap grows by tens of megabytes before V8 looks for garbage by itself.
 */
export const collectGarbage = async (output: string): Promise<void> => {
  const url = /Debugger listening on (ws:\S+)/.exec(output)?.[1]
  if (url === undefined) throw new Error("The process has no inspector")
  const inspector = new WebSocket(url)
  await new Promise<void>((resolve, reject) => {
    inspector.addEventListener("error", () => reject(new Error(`No inspector at ${url}`)), { once: true })
    // Twice: what the first finds may have held on to native memory that only then can go.
    const collect = (id: number): void =>
      inspector.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }))
    inspector.addEventListener("open", () => collect(1))
    inspector.addEventListener("message", () => collect(2), { once: true })
    inspector.addEventListener("message", ({ data }) => {
      if (JSON.parse(String(data)).id === 2) resolve()
    })
  })
  inspector.close()
  // Pages are given back a moment later.
  await pause(settleMillis)
}

const settleMillis = 200
