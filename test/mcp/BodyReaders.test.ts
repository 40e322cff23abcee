import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import { job, bodyJob } from "#src/infra/mcp/McpBodyThread.ts"
import { answerOf, planOf } from "#streams/mcp/Conversation.ts"
import { makeServer } from "#streams/mcp/McpServer.ts"
import { type BodyReaders, type PostedBody, readBody, received } from "#streams/mcp/Messages.ts"
import { tool } from "#streams/mcp/Tool.ts"
import { at, request, say } from "./Asking.ts"

/** A tool whose arguments become bytes where they are read. */
interface Sum {
  readonly bytes: Uint8Array
}

const readSum = ({ numbers }: JsonRecord) =>
  Array.isArray(numbers)
    ? Result.succeed<Sum>({ bytes: Uint8Array.from(numbers) })
    : Result.fail({ field: "numbers", text: "expected numbers" })

const readers: BodyReaders = {
  tools: { sum: readSum },
  plain: (json) => ({ names: Object.keys(json) })
}

const server = makeServer({
  name: "test",
  title: "Test",
  version: "1",
  instructions: "",
  tools: [
    tool({
      name: "sum",
      title: "Sum",
      description: "Adds",
      annotations: {},
      input: Schema.Struct({ numbers: Schema.Array(Schema.Int) }),
      read: readSum,
      handle: ({ bytes }) =>
        Effect.succeed({
          content: [{ type: "text", text: String(bytes.reduce((sum, byte) => sum + byte, 0)) }]
        })
    })
  ]
})

const bytesOf = (json: unknown) => new TextEncoder().encode(JSON.stringify(json))

/** The post of a thread, with the buffers that it moves. */
const posted = async (json: unknown, run = bodyJob(readers)) => {
  const { answer, transfer = [] } = await run({ bytes: bytesOf(json) })
  return structuredClone(answer, { transfer: [...transfer] }) as PostedBody
}

const textOf = async (body: ReturnType<typeof received>): Promise<unknown> => {
  const plan = planOf(server, () => "", body)
  if (plan._tag === "Plain") return plan.read
  const replies = await Effect.runPromise(
    Effect.forEach(plan.steps, (step) =>
      step._tag === "Call"
        ? Effect.map(step.call.run(undefined), step.call.reply)
        : Effect.succeed(step._tag === "Reply" ? step.reply : undefined)
    )
  )
  return JSON.parse(answerOf(plan, replies).body ?? "null")
}

const call = (args: unknown, id = 1) => request("tools/call", { name: "sum", arguments: args }, id)

describe("an endpoint's readers", () => {
  it("read arguments and plain bodies where they are parsed, with the same answers in a thread, beside it and without them", async () => {
    for (const json of [
      call({ numbers: [1, 2, 3] }),
      call({ numbers: "1" }),
      call({}),
      call([1]),
      call(null),
      [call({ numbers: [1] }, 1), request("ping", {}, 2), call({ numbers: [2, 3] }, 3), 5]
    ]) {
      const here = readBody(bytesOf(json), readers)
      const without = readBody(bytesOf(json))
      if (here === undefined || without === undefined) throw new Error("a small body is read")
      const expected = await textOf(without)
      assert.deepStrictEqual(await textOf(here), expected)
      assert.deepStrictEqual(await textOf(received(await posted(json))), expected)
    }
    assert.deepStrictEqual(await textOf(received(await posted({ a: 1, b: 2 }))), { names: ["a", "b"] })
    assert.deepStrictEqual(await textOf(received(await posted({ a: 1, b: 2 }, job))), { a: 1, b: 2 })
  })

  it("leave nothing of the arguments to be posted but what they made, whose bytes are moved", async () => {
    const numbers = Array.from({ length: 10_000 }, () => 1)
    const { answer, transfer } = await bodyJob(readers)({ bytes: bytesOf([call({ numbers })]) })
    assert.isNull(at(answer, "json", 0, "params", "arguments"))
    assert.deepStrictEqual(
      transfer?.map(({ byteLength }) => byteLength),
      [10_000]
    )
  })

  it("set bounds of their own, and arguments are refused by name where they are nested too deeply", async () => {
    const bounds = { members: 10, values: 10, depth: 5 }
    const narrow: BodyReaders = { ...readers, bounds }
    const many = call({ numbers: Array.from({ length: 20 }, () => 1) })
    assert.strictEqual(readBody(bytesOf(many), narrow)?._tag, "Refused")
    assert.isUndefined(readBody(bytesOf(many), readers, { members: 100, values: 10 }))
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
    for (const levels of [64, 65, 900])
      assert.strictEqual(readBody(bytesOf([call({ numbers: nested(levels) })]))?._tag, "Json")
    assert.strictEqual(readBody(bytesOf(nested(1_001)))?._tag, "Refused")
    const measured = async (levels: number) =>
      at(
        (await say({}, JSON.stringify(request("tools/call", deep(levels))))).json,
        "result",
        "content",
        0,
        "text"
      )
    const deep = (levels: number) => ({ name: "measure", arguments: { text: "a", more: nested(levels) } })
    assert.strictEqual(await measured(63), '{"characters":1}')
    assert.match(String(await measured(64)), /^more\[0\].*: nested deeper than 64$/)
  })
})
