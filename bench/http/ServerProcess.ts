import { serverCore } from "#bench/harness/Cores.ts"
import { type ForkedServer, forkServer } from "#bench/harness/ForkedServer.ts"
import { servers, type ServerName } from "./Servers.ts"

/** Starts one of the servers in a process of its own, on the server's core. */
export const startServer = (name: ServerName): Promise<ForkedServer> =>
  forkServer(import.meta.filename, serverCore, [name])

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
