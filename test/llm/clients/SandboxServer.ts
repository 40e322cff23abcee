import { startServer, type ServerProcess } from "#test/integration/ServerProcess.ts"
import { type SandboxClient, startSandbox } from "#test/sandbox/SandboxClient.ts"
import { type Caller, makeCaller } from "../Caller.ts"

/** A running server process over a sandbox upstream whose account the test can read, and a user with 5 USD. */
export interface SandboxServer {
  readonly server: ServerProcess
  readonly sandbox: SandboxClient
  readonly caller: Caller
  /** what clients are given as their base URL */
  readonly baseURL: string
  readonly dispose: () => Promise<void>
}

export const startSandboxServer = async (): Promise<SandboxServer> => {
  const sandbox = await startSandbox({ wordMillis: 2 })
  const server = await startServer({ env: { UPSTREAM_URL: sandbox.url } })
  const dispose = async (): Promise<void> => {
    await server.dispose()
    await sandbox.close()
  }
  try {
    const caller = await makeCaller(server, 5)
    return { server, sandbox, caller, baseURL: `${server.url}/api/v1`, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** 1 x 1 pixel */
export const tinyPng =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** JSON Schema of the arguments of a tool. */
export const weatherParameters = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 2 } },
  required: ["city"],
  additionalProperties: false
} as const

/** A fetch that remembers when it was called, in milliseconds. */
export const countingFetch = (): { readonly fetch: typeof fetch; readonly times: ReadonlyArray<number> } => {
  const times: Array<number> = []
  return {
    times,
    fetch: (input, init) => {
      times.push(performance.now())
      return fetch(input, init)
    }
  }
}
