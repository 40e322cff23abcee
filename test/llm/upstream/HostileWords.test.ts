import { assert, describe, it, layer } from "@effect/vitest"
import { Result } from "effect"
import { readUpstreamList } from "#streams/llm/UpstreamList.ts"
import { jsonFaultOf, mayBeUnfit, mendedJson } from "#schemas/core/JsonFitness.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { onStage } from "../completions/RoutedServer.ts"
import { modelEntry, ScriptedServer } from "./ScriptedServer.ts"
import { answer, chunk, lastChunk, streamHead } from "./ScriptedUpstream.ts"

/** JSON text as an upstream may write it, which no store and no other JSON writer takes. */
const half = String.raw`\ud800`
const nul = String.raw`\u0000`

const plain = (content: string, more = ""): string =>
  `{"id":"a${half}","object":"chat.completion","created":1e400,"model":"m${half}${nul}","choices":[{"index":0,` +
  `"message":{"role":"assistant","content":"${content}"},"finish_reason":"stop"}],` +
  `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":1e400}${more}}`

const event = (json: string) => ({ send: chunk(`data: ${json}\n\n`) })

const spoken = [modelEntry("good/model"), modelEntry("deep/model"), modelEntry("error/model")]

layer(ScriptedServer.layer(spoken), { excludeTestServices: true })(
  "an upstream that says what nobody can keep",
  (it) => {
    it.effect("is relayed mended, and leaves usage, credits and ledger as they were", () =>
      onStage(async ({ caller, play, server }) => {
        const someone = await caller(1)
        const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`
        play({
          "good/model": ({ body }) =>
            body.includes('"stream":true')
              ? [
                  { send: streamHead },
                  event(
                    `{"id":"x${half}","created":1e400,"choices":[{"index":0,"delta":{"content":"a${half}b"}}]}`
                  ),
                  event(
                    `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e400,"completion_tokens":2}}`
                  ),
                  { send: chunk("data: [DONE]\n\n") },
                  { send: lastChunk }
                ]
              : [{ send: answer(200, plain(`a${half}b${nul}`)) }],
          "deep/model": () => [{ send: answer(200, plain("a", `,"more":${deep}`)) }],
          "error/model": () => [
            { send: answer(400, `{"error":{"message":"no ${half}${nul}${"😀".repeat(400)}","code":1e400}}`) }
          ]
        })
        const said = await someone.say("good/model", "hello")
        assert.strictEqual(said.status, 200, said.raw)
        assert.notInclude(said.raw, half)
        const streamed = await someone.say("good/model", "hello", { stream: true })
        assert.strictEqual(streamed.status, 200, streamed.raw)
        const refused = await someone.say("deep/model", "hello")
        assert.strictEqual(refused.status, 502, refused.raw)
        const blamed = await someone.say("error/model", "hello")
        assert.strictEqual(blamed.status, 400, blamed.raw)
        assert.isTrue(blamed.error?.message.isWellFormed(), blamed.raw)
        await until("the usage of all four is there", async () => {
          const { body, status } = await ask(server, "GET", "/api/v1/usage?window=day", { key: someone.key })
          const { requests } = (body as { usage?: { day: { requests: number } } }).usage?.day ?? {
            requests: 0
          }
          return status === 200 && requests === 4 ? undefined : `${status} ${JSON.stringify(body)}`
        })
      })
    )
  }
)

describe("a list of models", () => {
  it("is taken without what nobody can keep", () => {
    const entry = JSON.stringify(modelEntry("good/model"))
      .replace('"name":"good/model"', `"name":"A${half}${nul}${"x".repeat(1_000)}"`)
      .replace('"description":"A scripted model"', `"description":"line\\nline${half}"`)
      .replace('"created":1767225600', '"created":9007199254740991')
      .replace('"context_length":100000', '"context_length":1e400')
    const list = Result.getOrThrow(readUpstreamList(`{"data":[${entry}]}`))
    const [model] = list.models
    assert.isTrue(model?.name.isWellFormed())
    assert.strictEqual(model?.name.length, 300)
    assert.notInclude(model?.name, "\u0000")
    assert.strictEqual(model?.description, "line\nline\ufffd")
    assert.strictEqual(model?.created, 0)
    assert.strictEqual(model?.contextLength, 0)
  })

  it("is not taken where it nests without end", () => {
    const deep = `{"data":[{"id":"a/b","pricing":{"prompt":"0","completion":"0"},"x":${"[".repeat(9_000)}${"]".repeat(9_000)}}]}`
    assert.isTrue(Result.isFailure(readUpstreamList(deep)))
  })
})

describe("fitness of JSON", () => {
  const taken = { isNulRefused: false }

  it("names the place of the first fault", () => {
    const places: ReadonlyArray<readonly [json: string, field: string]> = [
      [`"${half}"`, ""],
      [`{"a":[{"b":"${half}"}]}`, "a[0].b"],
      [`{"a":{"${half}":1}}`, "a.\ufffd"],
      [`[1,[1e400]]`, "[1][0]"],
      [`{"a":-1e999}`, "a"],
      [`{"a":${"9".repeat(400)}}`, "a"]
    ]
    for (const [json, field] of places) {
      assert.isTrue(mayBeUnfit(json), json)
      assert.strictEqual(jsonFaultOf(JSON.parse(json), taken)?.field, field, json)
    }
  })

  it("refuses NUL only where it is asked to", () => {
    const value: unknown = JSON.parse(`{"a":"${nul}"}`)
    assert.isUndefined(jsonFaultOf(value, taken))
    assert.strictEqual(jsonFaultOf(value, { isNulRefused: true })?.field, "a")
  })

  it("takes what is sound", () => {
    for (const json of ['"😀"', String.raw`"\ud83d\ude00"`, "1e308", `{"__proto__":{"a":1}}`]) {
      assert.isUndefined(jsonFaultOf(JSON.parse(json), taken), json)
      assert.deepStrictEqual(mendedJson(JSON.parse(json)), JSON.parse(json), json)
    }
  })

  it("mends texts, names and numbers, and gives up on what has no bottom", () => {
    const json = `{"a${half}":["${half}x",1e400],"__proto__":{"b":"${half}"}}`
    assert.strictEqual(
      JSON.stringify(mendedJson(JSON.parse(json))),
      `{"__proto__":{"b":"\ufffd"},"a\ufffd":["\ufffdx",null]}`
    )
    assert.isUndefined(mendedJson(JSON.parse("[".repeat(10_000) + "]".repeat(10_000))))
  })
})
