import { fork } from "node:child_process"
import { once } from "node:events"
import { nodeOn } from "./Cores.ts"
import { probed } from "./Meter.ts"
import * as Addon from "#src/front/uws/Addon.ts"

/** A server of the bench's own, in a process of its own on one core. */
export interface ForkedServer {
  readonly port: number
  readonly pid: number
  readonly stop: () => Promise<void>
}

export const forkServer = async (
  file: string,
  core: number,
  args: ReadonlyArray<string> = []
): Promise<ForkedServer> => {
  const child = fork(file, args, { ...nodeOn(core), env: { ...process.env, ...probed() } })
  const exited = once(child, "exit")
  const outcome: ReadonlyArray<number> | "exited" = await Promise.race([
    once(child, "message") as Promise<ReadonlyArray<number>>,
    exited.then(() => "exited" as const)
  ])
  const port = outcome === "exited" ? undefined : outcome[0]
  if (port === undefined) throw new Error(`${file} ended before it listened`)
  return {
    port,
    pid: child.pid ?? 0,
    stop: async () => {
      child.disconnect()
      await exited
    }
  }
}

const load = (): Addon.Loaded => Addon.load({ maxHeaderBytes: 16 * 1024 })

export const unavailableUws = (): string | undefined => {
  const loaded = load()
  return loaded._tag === "Loaded" ? undefined : loaded.reasons.join("; ")
}

/** The forked side: listens on a free loopback port until the parent lets go. */
export const serveForked = (register: (app: Addon.UwsApp) => void): void => {
  const loaded = load()
  if (loaded._tag === "NotLoaded") throw new Error(loaded.reasons.join("; "))
  loaded.addon._cfg("silent")
  const app = loaded.addon.App()
  register(app)
  app.listen("127.0.0.1", 0, 0, (socket) => {
    if (socket === false) throw new Error("Could not listen")
    process.send?.(loaded.addon.us_socket_local_port(socket))
  })
  process.once("disconnect", () => process.exit(0))
}

/** Collects the body of a request; `done` is not called where the client leaves before it is whole. */
export const bodyOf = (response: Addon.UwsResponse, done: (body: Buffer) => void): void => {
  let held: Buffer | undefined
  response.onData((chunk, isLast) => {
    // The chunk is detached when this returns.
    const copy = Buffer.from(Buffer.from(chunk))
    held = held === undefined ? copy : Buffer.concat([held, copy])
    if (isLast) done(held)
  })
}
