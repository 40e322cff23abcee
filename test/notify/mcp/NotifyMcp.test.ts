import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { at, modernRequest, request } from "#test/mcp/Asking.ts"
import { live, makeStage } from "../Stage.ts"

layer(TestServer.shared, live)("the tools of notifications", (it) => {
  it.effect("are listed, and send", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const stage = yield* makeStage
      yield* stage.project({ slug: "one" })
      const key = yield* stage.projectKey()
      for (const path of ["/mcp", "/api/v1/mcp"]) {
        const list = yield* ask("POST", path, { key, json: request("tools/list") })
        console.log(JSON.stringify(list.json, null, 1))
        const args = {
          app: "a",
          message: "m",
          attachments: [
            { filename: "x.txt", text: "hello" },
            { filename: "y", content_base64: "AAEC" }
          ]
        }
        const call = modernRequest("tools/call", { name: "send_notification", arguments: args })
        const sent = yield* ask("POST", path, { key, json: call.body, headers: call.headers })
        console.log(JSON.stringify(sent.json))
        const l2 = yield* ask("POST", path, { key, json: request("tools/call", { name: "list_projects" }) })
        console.log(JSON.stringify(l2.json))
        const p = yield* ask("POST", path, { key, json: { app: "a", message: "m" } })
        console.log(JSON.stringify([...p.headers]), p.status, JSON.stringify(p.json))
        assert.strictEqual(at(sent.json, "result", "isError"), undefined)
      }
    })
  )
})
