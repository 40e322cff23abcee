import { assert, layer } from "@effect/vitest"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "../Caller.ts"
import { onStage, type Stage } from "../completions/RoutedServer.ts"
import { plainSteps, streamEvents, tokens } from "../completions/Scripts.ts"
import { streamOf } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import type { AskedOf, Step } from "../upstream/ScriptedUpstream.ts"
import { type HostileRequest, hostileRequests, textOf } from "./HostileRequests.ts"

/** By hand: HOSTILE_REQUESTS=100000 HOSTILE_SEED=… */
const count = Number(process.env["HOSTILE_REQUESTS"] ?? 2_000)
const seed = Number(process.env["HOSTILE_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

const [free, paid] = ["text/free", "text/paid"]
const atOnce = 8

const serve = ScriptedServer.layer([
  modelEntry(free, { pricing: { prompt: "0", completion: "0" } }),
  modelEntry(paid, { architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] } })
])

/** The statuses that a caller may get; anything else is a fault of the server. */
const expected = new Set([200, 400, 402, 403, 404, 413])

const send = async (
  { server }: Stage,
  { key }: Caller,
  { body, changed }: HostileRequest
): Promise<number> => {
  const response = await fetch(`${server.url}/api/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body
  })
  const text = await response.text()
  const note = `seed ${seed}, ${changed.join(" and ")}: ${response.status} ${text.slice(0, 500)} for ${body.slice(0, 500)}`
  assert.isTrue(expected.has(response.status), note)
  if (response.headers.get("content-type")?.startsWith("application/json") === true) JSON.parse(text)
  else assert.match(text, /data: \[DONE\]\n\n$/, note)
  if (response.status !== 200) assert.isString(JSON.parse(text).error.message, note)
  return response.status
}

const sendAll = async (stage: Stage, callers: ReadonlyArray<Caller>): Promise<Map<number, number>> => {
  const requests = hostileRequests(seed, [free, paid])
  const statuses = new Map<number, number>()
  let left = count
  const line = async (caller: Caller): Promise<void> => {
    while (left-- > 0) {
      const { done, value } = requests.next()
      if (done === true) return
      const status = await send(stage, caller, value)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(
    Array.from({ length: atOnce }, (_, index) => line(callers[index % callers.length] ?? assert.fail()))
  )
  return statuses
}

const said = { usage: tokens(10, 5) }

/** The request to a model is JSON for any input, and says once whether it wants a stream. */
const answering = (asked: AskedOf): Iterable<Step> => {
  const { stream } = JSON.parse(asked.body) as { readonly stream?: unknown }
  return stream === true ? [{ send: streamOf(streamEvents("Hello", said)) }] : plainSteps("Hello", said)
}

/** The reads of the other user, every endpoint of it. */
const readable = [
  "/credits",
  "/usage",
  "/usage?window=day",
  "/models",
  "/collections",
  "/keys",
  "/key",
  "/sites",
  "/agent/sessions"
]

const timeout = 120_000 + count * 60

layer(serve, { excludeTestServices: true, timeout })("hostile requests", (it) => {
  const named = `harm nobody but their sender (seed ${seed}, ${count} of them)`
  const body = () =>
    onStage(async (stage) => {
      process.stderr.write(`hostile requests: HOSTILE_SEED=${seed} HOSTILE_REQUESTS=${count}\n`)
      const { caller, play, server, settled } = stage
      play({ [free]: answering, [paid]: answering })
      const [hostile, poor, honest] = [await caller(5), await caller(0), await caller(5)]
      const statuses = await sendAll(stage, [hostile, poor])
      assert.isAbove(statuses.get(200) ?? 0, count / 20)
      assert.isAbove(statuses.get(400) ?? 0, count / 20)
      for (const path of readable) {
        const { body, status } = await ask(server, "GET", `/api/v1${path}`, { key: honest.key })
        assert.strictEqual(status, 200, `seed ${seed}, ${path}: ${JSON.stringify(body)}`)
      }
      const heard = await honest.say(paid, "Hello")
      assert.strictEqual(heard.status, 200, heard.raw)
      await until("usage and credits are current", async () => {
        const { body } = await ask(server, "GET", "/api/v1/usage", { key: honest.key })
        const { lifetime_spent_usd: spent } = await honest.credits()
        const isCurrent = textOf(body).includes('"requests":1') && spent === heard.router?.charged_usd
        return isCurrent ? undefined : `seed ${seed}: ${spent} USD spent, ${textOf(body)}`
      })
      const { lifetime_spent_usd: spent } = await hostile.credits()
      assert.isAtMost(spent, 5)
      const verdict = await ask(server, "GET", "/api/v1/admin/ledger/verify", {})
      assert.deepInclude(verdict.body, { ok: true, differenceCount: 0 }, `seed ${seed}`)
      await settled([honest], BigInt(Math.round((heard.router?.charged_usd ?? 0) * 1e12)))
    })
  it.effect(named, body, timeout)
})
