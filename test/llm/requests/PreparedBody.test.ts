import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { isInPieces, lengthOf, type OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import type { CallBodyOptions } from "#src/llm/requests/CallBody.ts"
import { type ChatRequest, type ParsedChatRequest, readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { makeRequestReader } from "#src/llm/requests/RequestReader.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

const threads = Effect.provide(Workers.layer.pipe(Layer.provideMerge(AppConfig.layerOf({}))))

const filler = 'ä€𝄞\\" \u0000'.repeat(20_000)

const read = (text: string, onLetGo: (left: number) => void = () => undefined, isKept = false) =>
  Effect.gen(function* () {
    const reader = yield* makeRequestReader
    const made = reader.chat({ bytes: Buffer.from(text), isKept, userId: "usr_1", onLetGo })
    return Effect.isEffect(made) ? yield* made : assert.fail("it was read in place")
  })

const sound = (read: ChatRequest | RequestFault): ChatRequest =>
  read instanceof RequestFault ? assert.fail(`${read.param}: ${read.problem}`) : read

const inPlace = (text: string): ParsedChatRequest => {
  const request = readChatRequest(JSON.parse(text))
  return request instanceof RequestFault ? assert.fail(request.problem) : request
}

const textOf = (body: OutgoingBody): string => {
  if (typeof body === "string") return body
  if (!isInPieces(body)) return Buffer.from(body).toString("utf8")
  const bytes = Buffer.concat(body.pieces)
  assert.strictEqual(bytes.length, lengthOf(body))
  return bytes.toString("utf8")
}

const image = { type: "image_url", image_url: { url: "https://a.example/one.png" } }
const options: CallBodyOptions = {
  model: 'acme/"one',
  maxTokens: undefined,
  description: undefined,
  isLast: false
}

const bodies = [
  { messages: [{ role: "user", content: filler }] },
  {
    messages: [{ role: "user", content: filler }],
    stream: true,
    stream_options: { chunk_size: 1 },
    max_tokens: 50
  },
  {
    messages: [
      { role: "user", content: [image, { type: "text", text: filler }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }]
      },
      { role: "user", content: [{ type: "text", text: "and?" }, image] }
    ],
    tools: [{ type: "function", function: { name: "f" } }],
    max_completion_tokens: 7,
    max_tokens: null
  }
].map((fields) => ({
  model: "collection/mine",
  models: ["a/b"],
  preset: "p",
  seed: 7,
  ["__proto__x"]: 1,
  ...fields
}))

describe("a body that is read in a thread", () => {
  it.live("is what it would be if it were read in place, for every model and stage", () =>
    Effect.gen(function* () {
      for (const body of bodies) {
        const text = JSON.stringify(body)
        const here = inPlace(text)
        const there = sound(yield* read(text))
        const { body: _, source: parsed, ...figures } = here
        const { source, ...told } = there
        assert.deepStrictEqual(told, figures)
        assert.strictEqual(source.text(), parsed.text())
        const asks = [
          options,
          { ...options, maxTokens: 20 },
          ...(here.imageCount > 0 ? [{ ...options, description: 'A "boat"\u0000' }] : [])
        ]
        for (const ask of asks)
          assert.deepStrictEqual(
            JSON.parse(textOf(source.forModel(ask))),
            JSON.parse(textOf(parsed.forModel(ask)))
          )
        assert.deepStrictEqual(
          JSON.parse(textOf(source.forVision("v", 9))),
          JSON.parse(textOf(parsed.forVision("v", 9)))
        )
      }
    }).pipe(threads)
  )

  it.live(
    "says once to every reader what it means: of a name that comes twice the last counts, as here",
    () =>
      Effect.gen(function* () {
        const text = `{"max_tokens":9,"model":"cheap","mess\\u0061ges":[],"messages":[{"role":"user","content":"a","content":${JSON.stringify(filler)}}],"model":"dear","max_tokens":3}`
        const request = sound(yield* read(text))
        assert.deepStrictEqual([request.model, request.maxTokens], ["dear", 3])
        const sent = textOf(request.source.forModel({ ...options, model: "dear" }))
        for (const name of ["model", "max_tokens", "messages", "content"])
          assert.strictEqual(sent.split(`"${name}":`).length, 2, name)
      }).pipe(threads)
  )

  it.live("is let go of when its last try was sent, but for the text to be counted", () =>
    Effect.gen(function* () {
      let left: number | undefined
      const request = sound(yield* read(JSON.stringify(bodies[0]), (bytes) => (left = bytes)))
      request.source.forModel(options)
      const last = request.source.forModel({ ...options, isLast: true })
      assert.isUndefined(left)
      if (typeof last !== "object" || !isInPieces(last)) return assert.fail("it is in pieces")
      last.onSent?.()
      assert.strictEqual(left, Buffer.byteLength(filler))
      assert.strictEqual(request.source.text(), filler)
      assert.throws(() => request.source.forModel(options), /let go of/)
    }).pipe(threads)
  )

  it.live(
    "is refused for what it would be refused for in place, and for more members or values than it may have",
    () =>
      Effect.gen(function* () {
        const members = Array.from({ length: 100_001 }, (_, index) => `"k${index}":1`).join()
        const faults = [
          [
            `{"model":"m","messages":[{"role":"user","content":"a"}],${members}}`,
            "",
            "more than 100000 members"
          ],
          [`{"model":"m","input":[${"1,".repeat(1_000_001)}1]}`, "", "more than 1000000 values"],
          [`{"a":${"[".repeat(100)}${"]".repeat(100)}}`, "", "nested deeper than 64"],
          [
            `{"model":"m","messages":[{"role":"user","content":5}],"user":"${"u".repeat(200_000)}"}`,
            "messages[0].content",
            "expected a text or a list of parts"
          ]
        ] as const
        for (const [text, param, problem] of faults) {
          const fault = yield* read(text)
          assert.instanceOf(fault, RequestFault)
          if (fault instanceof RequestFault)
            assert.deepStrictEqual([fault.param, fault.problem], [param, problem])
        }
      }).pipe(threads)
  )

  it.live("keeps the caller's bytes where they are needed again, and takes them where they are not", () =>
    Effect.gen(function* () {
      const reader = yield* makeRequestReader
      for (const isKept of [true, false]) {
        const bytes = Buffer.from(JSON.stringify(bodies[0]))
        const made = reader.chat({ bytes, isKept, userId: "usr_1", onLetGo: () => undefined })
        if (Effect.isEffect(made)) yield* made
        assert.strictEqual(bytes.length > 0, isKept)
      }
    }).pipe(threads)
  )
})
