import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { HttpRouter } from "effect/http"
import { ClientFrame } from "#schemas/agents/ClientFrame.ts"
import { exampleConversation } from "#schemas/agents/ExampleConversation.ts"
import { clientExamples, eventExamples, serverExamples, toolExamples } from "#schemas/agents/FrameExamples.ts"
import { agentErrorCodes, closeCodes, eventKinds, events, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { toolErrorCodes, tools } from "#schemas/agents/ToolCall.ts"
import { fieldRowsOf } from "#src/docs/page/FieldRows.ts"
import * as ReferenceRoutes from "#src/agents/reference/ReferenceRoutes.ts"

/** Decodes as a peer does, and gives back what was not lost: a field that the schema does not know would be. */
const decoded = (schema: Schema.ConstraintCodec<unknown>, value: unknown): unknown =>
  Schema.decodeUnknownSync(schema)(JSON.parse(JSON.stringify(value)))

const clientTypes = ClientFrame.members.map(({ fields }) => fields.type.literal)
const serverTypes = [...new Set(ServerFrame.members.map(({ fields }) => fields.type.literal))]

describe("the examples of the agent protocol", () => {
  it("are one of every frame, kind of event and tool, and no more", () => {
    assert.sameMembers(Object.keys(clientExamples), clientTypes)
    assert.sameMembers([...Object.keys(serverExamples), "event"], serverTypes)
    assert.sameMembers(Object.keys(eventExamples), [...eventKinds])
    assert.sameMembers(
      Object.keys(toolExamples),
      tools.map(({ method }) => method)
    )
  })

  it.each(ClientFrame.members.map((frame) => [frame.fields.type.literal, frame] as const))(
    "show a client’s %s that its schema takes, with every field that it has",
    (type, frame) => {
      const example = clientExamples[type]
      assert.deepStrictEqual(decoded(frame, example), example)
      // A result and an error exclude each other.
      if (type === "tool.result") return
      assert.sameMembers(Object.keys(example), Object.keys(frame.fields))
    }
  )

  it("show frames of the server that their schemas take", () => {
    for (const [type, example] of Object.entries(serverExamples)) {
      const frame = ServerFrame.members.find(({ fields }) => fields.type.literal === type)
      assert.isDefined(frame, type)
      assert.deepStrictEqual(decoded(frame ?? Schema.Never, example), example)
    }
  })

  it.each(eventKinds)("show an event %s that its schema takes", (kind) => {
    assert.deepStrictEqual<unknown>(decoded(events[kind], eventExamples[kind]), eventExamples[kind])
  })

  it.each(tools.map((tool) => [tool.method, tool] as const))(
    "show params with every field, and a result, of %s",
    (method, { params, result }) => {
      const example = toolExamples[method]
      assert.deepStrictEqual<unknown>(decoded(params, example.params), example.params)
      assert.deepStrictEqual<unknown>(decoded(result, example.result), example.result)
      assert.sameMembers(Object.keys(example.params), Object.keys(params.fields))
    }
  )

  it("tell a conversation of valid frames whose numbers count on without a hole", () => {
    const numbers: Array<number> = []
    for (const said of exampleConversation) {
      if (said.from === "nobody") continue
      const { frame, from } = said
      assert.deepStrictEqual<unknown>(decoded(from === "client" ? ClientFrame : ServerFrame, frame), frame)
      if (from === "server" && "seq" in frame && frame.type !== "ready") numbers.push(frame.seq)
    }
    assert.deepStrictEqual(
      numbers,
      numbers.map((_, index) => index + 1)
    )
    assert.isAbove(numbers.length, 10)
  })
})

describe("the reference of the agent protocol", () => {
  const server = HttpRouter.toWebHandler(ReferenceRoutes.layer, { disableLogger: true })
  const get = (path: string): Promise<Response> => server.handler(new Request(`http://localhost${path}`))

  it("has an anchor for every frame, kind, method and code, and no link that leads nowhere", async () => {
    const answer = await get("/docs/agent")
    assert.strictEqual(answer.headers.get("content-type"), "text/html; charset=utf-8")
    const page = await answer.text()
    const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => id)
    assert.strictEqual(new Set(ids).size, ids.length, "an id is used twice")
    const expected = [
      ...clientTypes.map((type) => `client-${type}`),
      ...serverTypes.filter((type) => type !== "event").map((type) => `server-${type}`),
      ...eventKinds.map((kind) => `event-${kind}`),
      ...tools.flatMap(({ method }) => [`tool-${method}`, `params-${method}`, `result-${method}`]),
      ...Object.values(closeCodes).map((code) => `close-${code}`),
      ...agentErrorCodes.map((code) => `error-${code}`),
      ...toolErrorCodes.map((code) => `tool-error-${code}`)
    ]
    assert.includeMembers(ids, expected)
    const targets = Array.from(page.matchAll(/href="#([^"]+)"/g), ([, id = ""]) => id)
    assert.isAbove(targets.length, 60)
    assert.deepStrictEqual(
      targets.filter((id) => !ids.includes(id)),
      []
    )
  })

  it("asks nobody for anything, and runs no script", async () => {
    const answer = await get("/docs/agent")
    const page = await answer.text()
    assert.notMatch(page, /<script|@import|url\(|src=/)
    const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? assert.fail("no style")
    const hash = createHash("sha256").update(style).digest("base64")
    const policy = answer.headers.get("content-security-policy") ?? ""
    assert.include(policy, `default-src 'none'; style-src 'sha256-${hash}';`)
  })

  it("says of a field what it is, whether it has to be there, and what bounds it", () => {
    const rows = new Map(fieldRowsOf(ClientFrame.members[0]).rows.map((row) => [row.path, row]))
    assert.deepInclude(rows.get("client.version"), {
      isRequired: true,
      type: "string",
      limits: "1 to 64 characters, on one line"
    })
    assert.deepInclude(rows.get("lastSeq"), { isRequired: false, type: "integer", limits: "not negative" })
    assert.include(rows.get("thinkingLevel")?.type, '"off" | "minimal"')
    const message = fieldRowsOf(events.message_end).rows.map(({ path }) => path)
    assert.includeMembers(message, ["content", "content[].text", "content[].args", "usage.totalTokens"])
    const ready = fieldRowsOf(ServerFrame.members[0]).rows.map(({ path }) => path)
    assert.includeMembers(ready, ["model.context_length", "billing.plan", "limits.queue"])
  })

  it("is there as JSON Schema, whose references lead somewhere", async () => {
    const text = await (await get("/docs/agent.json")).text()
    const document: { readonly $defs: Readonly<Record<string, object>> } = JSON.parse(text)
    const references = Array.from(text.matchAll(/"#\/\$defs\/([^"]+)"/g), ([, name = ""]) => name)
    assert.includeMembers(references, ["ClientFrame", "ServerFrame", "AgentModel"])
    assert.includeMembers(Object.keys(document.$defs), references)
    assert.includeMembers(
      Object.keys(document.$defs),
      tools.flatMap(({ method }) => [`${method}.params`, `${method}.result`])
    )
  })
})
