import { fork } from "node:child_process"
import { once } from "node:events"
import { nodeOn, serverCore } from "#bench/harness/Cores.ts"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { servers, type ServerName } from "./Servers.ts"

/** A server in a process of its own, on the server's core. */
export interface ServerProcess {
  readonly port: number
  /** CPU time since its start */
  readonly cpuMillis: () => number
}

export const withServerProcess = async <A>(
  name: ServerName,
  use: (server: ServerProcess) => Promise<A>
): Promise<A> => {
  const child = fork(import.meta.filename, [name], nodeOn(serverCore))
  const exited = once(child, "exit")
  const outcome: ReadonlyArray<number> | "exited" = await Promise.race([
    once(child, "message") as Promise<ReadonlyArray<number>>,
    exited.then(() => "exited" as const)
  ])
  const port = outcome === "exited" ? undefined : outcome[0]
  if (port === undefined) throw new Error(`${name} ended before it listened`)
  try {
    return await use({ port, cpuMillis: () => cpuMillis(child.pid ?? 0) })
  } finally {
    child.disconnect()
    await exited
  }
}

const serve = (name: string): void => {
  const server = Object.entries(servers).find(([known]) => known === name)?.[1]
  if (server === undefined) throw new Error(`There is no server "${name}"`)
  const running = server(
    (port) =>
      new Promise<void>((resolve) => {
        process.once("disconnect", () => resolve())
        process.send?.(port)
      })
  )
  running.then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    }
  )
}

if (process.argv[1] === import.meta.filename) serve(process.argv[2] ?? "")
