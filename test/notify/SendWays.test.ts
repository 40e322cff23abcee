import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { shortFaults, tryCalls, tryForms, tryJson } from "./SendWays.ts"
import { live } from "./Stage.ts"

layer(TestServer.shared, live)("a field that is at fault is told in one text", (it) => {
  it.effect("by JSON and by a plain body", () => tryJson(shortFaults))

  it.effect("by a form", () => Effect.map(tryForms(shortFaults), (asked) => assert.isAbove(asked, 20)))

  it.effect("by a call of a tool, where uploads have another name", () =>
    Effect.map(tryCalls(shortFaults), (asked) => assert.isAbove(asked, 30))
  )
})
