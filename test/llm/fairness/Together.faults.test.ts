import { setMaxListeners } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { RawClient } from "#test/front/RawClient.ts"
import type { Caller } from "../Caller.ts"
import { onStage, type Stage } from "../completions/RoutedServer.ts"
import { answersWith, tokens } from "../completions/Scripts.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"

const mib = 1024 * 1024
const [free, hangs, quick] = ["text/free", "text/hangs", "text/quick"]

const serve = ScriptedServer.layer(
  [
    modelEntry(free, { pricing: { prompt: "0", completion: "0" } }),
    modelEntry(hangs, { context_length: 10_000_000 }),
    modelEntry(quick)
  ],
  { limits: { upstreamConnections: 100, callBodiesBytes: 16 * mib } }
)

/** A caller's requests, repeated until it is over. */
type Attack = (isOver: () => boolean, leaving: AbortSignal) => Promise<unknown>

const many = (count: number, one: () => Promise<unknown>): Promise<unknown> =>
  Promise.allSettled(Array.from({ length: count }, one))

/** Any answer: the attacker ignores it, and comes again. */
const repeated =
  (count: number, one: (leaving: AbortSignal) => Promise<unknown>): Attack =>
  (isOver, leaving) =>
    many(count, async () => {
      while (!isOver()) {
        await Promise.allSettled([one(leaving)])
        await sleep(500)
      }
    })

/** Bodies that are begun and go on at a little more than nothing. */
const stalledBodies = ({ server }: Stage, key: string, count: number): Attack =>
  repeated(count, async (leaving) => {
    const client = await RawClient.open(Number(new URL(server.url).port))
    const authorization = key === "" ? "" : `Authorization: Bearer ${key}\r\n`
    await client.send(
      `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\n${authorization}Content-Length: ${20 * mib}\r\n\r\n`
    )
    await client.send(Buffer.alloc(2 * mib, 0x20))
    while (!client.isClosed && !leaving.aborted) {
      await client.send("x".repeat(1_100))
      await sleep(200)
    }
    client.destroy()
  })

const streams = (caller: Caller, count: number): Attack =>
  repeated(count, (signal) => caller.say(free, "x", { stream: true }, { signal }))

const largePrompts = (caller: Caller, count: number): Attack =>
  repeated(count, (signal) => caller.say(hangs, "x", { user: "u".repeat(2 * mib) }, { signal }))

const manyMembers = ({ server }: Stage, { key }: Caller): Attack => {
  const members = Array.from({ length: 150_000 }, (_, index) => `"k${index}":1`).join()
  const body = `{"model":"${free}","messages":[{"role":"user","content":"hi"}],${members}}`
  return repeated(2, (signal) =>
    fetch(`${server.url}/api/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body,
      signal
    }).then((response) => response.text())
  )
}

/** Milliseconds until the first word of a stream, which has to come. */
const firstWord = async ({ server }: Stage, { key }: Caller): Promise<number> => {
  const from = performance.now()
  const response = await fetch(`${server.url}/api/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: quick, messages: [{ role: "user", content: "Hello" }], stream: true })
  })
  assert.strictEqual(response.status, 200, response.status === 200 ? "" : await response.clone().text())
  const reader = response.body?.getReader() ?? assert.fail("no body")
  await reader.read()
  const millis = performance.now() - from
  while (!(await reader.read()).done);
  return millis
}

layer(serve, { excludeTestServices: true })("while others do their worst", (it) => {
  it.effect(
    "a stranger, a user without credits and a user with a key refuse nobody and keep nobody waiting",
    () =>
      onStage(async (stage) => {
        const { caller, play } = stage
        play({
          [free]: () => [{ silence: true }],
          [hangs]: () => [{ silence: true }],
          [quick]: answersWith("Here I am", { usage: tokens(10, 5) })
        })
        const [poor, greedy, honest] = [await caller(0), await caller(50), await caller(5)]
        const leaving = new AbortController()
        setMaxListeners(0, leaving.signal)
        let over = false
        const attacks = [
          stalledBodies(stage, "", 3),
          stalledBodies(stage, `sk_${"x".repeat(40)}`, 3),
          streams(poor, 70),
          manyMembers(stage, poor),
          stalledBodies(stage, greedy.key, 3),
          largePrompts(greedy, 5),
          streams(greedy, 70)
        ].map((attack) => attack(() => over, leaving.signal))
        await sleep(2_000)
        const waits: Array<number> = []
        for (let call = 0; call < 25; call++) {
          waits.push(await firstWord(stage, honest))
          await sleep(50)
        }
        over = true
        leaving.abort()
        await Promise.all(attacks)
        // Attackers, upstream and server share this process: how long the waits are says little, that they end is the test.
        const longest = waits.toSorted((a, b) => a - b).at(-1) ?? Infinity
        process.stderr.write(`first words under attack: at most ${Math.round(longest)} ms\n`)
      })
  )
})
