import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { SandboxClient } from "./sandbox/SandboxClient.ts"

/** That of the test's server, as `/readyz` names it. It is everybody's where the server is: clear nothing, ask by channel. */
export const sandboxOfServer = Effect.gen(function* () {
  const { json } = yield* (yield* TestServer).ask("GET", "/readyz")
  const report = json as { readonly components: Readonly<Record<string, { readonly detail?: string }>> }
  const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(report.components["channels"]?.detail ?? "") ?? []
  if (origin === undefined) throw new Error(`no sandbox on /readyz: ${JSON.stringify(json)}`)
  return new SandboxClient(origin)
})
