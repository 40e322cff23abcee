import { monitorEventLoopDelay } from "node:perf_hooks"
import { assert, layer } from "@effect/vitest"
import type { Reachable } from "#test/harness/ApiClient.ts"
import { onStage } from "../completions/RoutedServer.ts"
import { answersWith, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const model = "text/one"

const serve = ScriptedServer.layer([
  modelEntry(model, { context_length: 100_000_000, pricing: { prompt: "0", completion: "0" } })
])

const members = (count: number): string => Array.from({ length: count }, (_, index) => `"k${index}":1`).join()

const post = async ({ url }: Pick<Reachable, "url">, key: string, body: string) => {
  const response = await fetch(`${url}/api/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body
  })
  return { status: response.status, text: await response.text() }
}

/** The longest that the event loop of this process, which is the server's, was held up meanwhile, in milliseconds. */
const held = async (work: () => Promise<void>): Promise<number> => {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  await work()
  delay.disable()
  return delay.max / 1_000_000
}

/**
 * Two seconds, and where the machine is slow three times what it takes to read a million members at once. The clients and the
 * upstream of this test are in the same process, and take as much of it as the server may.
 */
const bearableMillis = (): number => {
  const text = `{${members(1_200_000)}}`
  const begun = performance.now()
  JSON.parse(text)
  return Math.max(2_000, 3 * (performance.now() - begun))
}

layer(serve, { excludeTestServices: true })("bodies that are dear to read", (it) => {
  it.effect("hold nobody up: a million members are refused, a hundred thousand are taken", () =>
    onStage(async ({ caller, listen, play, server }) => {
      play({ [model]: answersWith("Yes", { usage: tokens(10, 5) }) })
      const { key } = await caller(0)
      const asked = listen()
      const body = (more: string) =>
        `{"model":"${model}","messages":[{"role":"user","content":"hi"}],${more}}`
      const many = [
        body(members(1_200_000)),
        body(`"metadata":{${members(1_000_000)}}`),
        body(members(99_000)),
        body(`"metadata":{${members(99_000)}}`),
        body(members(3_900)),
        body(`"deep":${"[".repeat(2_000_000)}`)
      ]
      const statuses: Array<number> = []
      const millis = await held(async () => {
        for (const text of many) statuses.push((await post(server, key, text)).status)
      })
      assert.deepStrictEqual(statuses, [400, 400, 200, 200, 200, 400])
      assert.isBelow(millis, bearableMillis())
      // The forwarded body is the whole request.
      const metadata = JSON.parse(asked()[1]?.body ?? "{}").metadata
      assert.deepStrictEqual(metadata, JSON.parse(`{${members(99_000)}}`))
    })
  )

  it.effect("hold nobody up by their size", () =>
    onStage(async ({ caller, play, server }) => {
      play({ [model]: answersWith("Yes", { usage: tokens(10, 5) }) })
      const { key } = await caller(0)
      const body = JSON.stringify({
        model,
        messages: [{ role: "user", content: 'a\\"ä '.repeat(1_500_000) }]
      })
      const millis = await held(async () => {
        const answers = await Promise.all(Array.from({ length: 4 }, () => post(server, key, body)))
        for (const { status, text } of answers) assert.strictEqual(status, 200, text)
      })
      assert.isBelow(millis, bearableMillis())
    })
  )
})
