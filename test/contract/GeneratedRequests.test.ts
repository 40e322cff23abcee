import { describe } from "@effect/vitest"
import { Context, ManagedRuntime } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { describeGenerated } from "./GeneratedRequests.ts"

// A server of its own: the requests change what is everybody's, markups for one.
describe("requests generated from the published document", () =>
  describeGenerated(8, async () => {
    const runtime = ManagedRuntime.make(TestServer.own())
    const { logged, server } = Context.get(await runtime.context(), TestServer)
    return { ...server, output: () => logged().join("\n"), dispose: () => runtime.dispose() }
  }))
