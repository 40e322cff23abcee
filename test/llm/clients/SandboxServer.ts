import { Context, ManagedRuntime } from "effect"
import type { Reachable } from "#test/harness/ApiClient.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { type SandboxClient, startSandbox } from "#test/sandbox/SandboxClient.ts"
import { type Caller, makeCaller } from "../Caller.ts"

/** A running server over a sandbox upstream whose account the test can read, and a user with 5 USD. */
export interface SandboxServer {
  readonly server: Reachable
  readonly sandbox: SandboxClient
  readonly caller: Caller
  /** the clients' base URL */
  readonly baseURL: string
}

const start = async () => {
  const sandbox = await startSandbox({ wordMillis: 2 })
  // Tests that leave a call wait for the end of the upstream's.
  const settings = { upstreamUrl: sandbox.url, limits: { usageWaitMillis: 500 } }
  const runtime = ManagedRuntime.make(TestServer.own(settings))
  const { server } = Context.get(await runtime.context(), TestServer)
  return { server, sandbox }
}

let started: ReturnType<typeof start> | undefined

/** The server is started once for all files of a worker; the user is new. */
export const startSandboxServer = async (): Promise<SandboxServer> => {
  started ??= start()
  const { sandbox, server } = await started
  return { server, sandbox, caller: await makeCaller(server, 5), baseURL: `${server.url}/api/v1` }
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
