import { assert, layer } from "@effect/vitest"
import { Redacted } from "effect"
import { onStage } from "../completions/RoutedServer.ts"
import { modelEntry, ScriptedServer } from "./ScriptedServer.ts"
import { answer, chunk, lastChunk, streamHead } from "./ScriptedUpstream.ts"

const secret = "sk-or-v1-0123456789abcdef"
const models = ["error/model", "plain/model", "stream/model", "late/model"].map((id) => modelEntry(id))

const content = (text: string): string =>
  JSON.stringify({ id: "x", choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })

const options = { upstreamApiKey: Redacted.make(secret) }

layer(ScriptedServer.layer(models, options), { excludeTestServices: true })(
  "an upstream that echoes the platform's key",
  (it) => {
    it.effect("is not relayed with it: in errors, answers and streams, wherever they are cut", () =>
      onStage(async ({ caller, play }) => {
        const someone = await caller(1)
        play({
          "error/model": ({ headers }) => [
            {
              send: answer(
                500,
                JSON.stringify({ error: { message: `no route for ${headers["authorization"]}` } })
              )
            }
          ],
          "plain/model": ({ headers }) => [
            {
              send: answer(
                200,
                JSON.stringify({
                  id: "x",
                  choices: [
                    {
                      index: 0,
                      message: { role: "assistant", content: `you sent ${headers["authorization"]}` },
                      finish_reason: "stop"
                    }
                  ],
                  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
                })
              )
            }
          ],
          "stream/model": ({ headers }) => {
            const event = `data: ${content(`you sent ${headers["authorization"]} to me`)}\n\n`
            const at = event.indexOf(secret) + 7
            return [
              { send: streamHead },
              { send: chunk(event.slice(0, at)) },
              { pauseMillis: 50 },
              { send: chunk(event.slice(at)) },
              { send: chunk("data: [DONE]\n\n") },
              { send: lastChunk }
            ]
          },
          "late/model": ({ headers }) => [
            { send: streamHead },
            { send: chunk(`data: ${content("well")}\n\n`) },
            {
              send: chunk(
                `data: ${JSON.stringify({ error: { message: headers["authorization"], code: 500 } })}\n\n`
              )
            },
            { send: lastChunk }
          ]
        })
        const answers = [
          await someone.say("error/model", "hello"),
          await someone.say("plain/model", "hello"),
          await someone.say("stream/model", "hello", { stream: true }),
          await someone.say("late/model", "hello", { stream: true })
        ]
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          [502, 200, 200, 200]
        )
        for (const { raw } of answers) {
          assert.notInclude(raw, secret)
          assert.include(raw, "Bearer ****")
        }
      })
    )
  }
)
