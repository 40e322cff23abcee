import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { SandboxClient } from "./sandbox/SandboxClient.ts"

/** That of a server, as its `/readyz` names it. */
export const sandboxNamedBy = (readyz: unknown): SandboxClient => {
  const { components } = readyz as {
    readonly components: Readonly<Record<string, { readonly detail?: string }>>
  }
  const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(components["channels"]?.detail ?? "") ?? []
  if (origin === undefined) throw new Error(`no sandbox on /readyz: ${JSON.stringify(readyz)}`)
  return new SandboxClient(origin)
}

/** That of the test's server. It is everybody's where the server is: clear nothing, ask by channel. */
export const sandboxOfServer = Effect.gen(function* () {
  const { json } = yield* (yield* TestServer).ask("GET", "/readyz")
  return sandboxNamedBy(json)
})
