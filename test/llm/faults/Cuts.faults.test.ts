import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import type { Caller } from "../Caller.ts"
import type { ChatAnswer } from "../ChatClient.ts"
import {
  otherRecordings,
  plainRecording,
  recordedEvents,
  recordedPieces,
  recordedText,
  streamRecording
} from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import type { AskedOf, Step } from "../upstream/ScriptedUpstream.ts"

/** Every recording is played up to every one of its bytes; then the connection closes. */
const cutModel = "cut/model"
const good = "good/model"

/** Pico-USD of a whole recording: its cost and 2 %. */
const wholePrice = 12_586_800n

const isStreamed = ({ body }: AskedOf): boolean => body.includes(`"stream":true`)

/** The request says which cut to make: parameters that the server does not know are passed through. */
const cut = (asked: AskedOf): ReadonlyArray<Step> => {
  const at = Number(/"cut_at":(\d+)/.exec(asked.body)?.[1])
  const other = otherRecordings[/"recording":"([^"]+)"/.exec(asked.body)?.[1] ?? ""]
  const bytes = other?.bytes ?? (isStreamed(asked) ? streamRecording : plainRecording)
  return [{ send: bytes.subarray(0, at) }, { end: "close" }]
}

const whole = (asked: AskedOf): ReadonlyArray<Step> => [
  { send: isStreamed(asked) ? streamRecording : plainRecording }
]

/** Offsets in the recording at which its events are complete. */
const eventEnds = recordedEvents.map((event) => {
  const bytes = Buffer.from(event)
  return streamRecording.indexOf(bytes) + bytes.length
})
const [, , , , finishEnd = 0, usageEnd = 0] = eventEnds

/** The text in the first bytes of the stream. */
const saidIn = (bytes: number): string =>
  recordedPieces.filter((_, index) => (eventEnds[index + 1] ?? Infinity) <= bytes).join("")

const chargedOf = ({ router }: ChatAnswer): bigint => picoOfNumber(router?.charged_usd ?? 0) ?? 0n

/** Calls in flight at once. */
const parallel = 24

/** Asks once for every place to cut at; answers what all of it cost. */
const everyCut = async (
  { key, say }: Caller,
  model: string,
  length: number,
  more: object,
  check: (answer: ChatAnswer, at: number) => void
): Promise<bigint> => {
  let [next, spent] = [0, 0n]
  const worker = async (): Promise<void> => {
    while (next < length) {
      const at = next++
      const signal = AbortSignal.timeout(30_000)
      const answer = await say(model, "What do you say?", { cut_at: at, max_tokens: 50, ...more }, { signal })
      assert.notInclude(answer.raw, key)
      check(answer, at)
      spent += chargedOf(answer)
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return spent
}

const assertFailed = (answer: ChatAnswer, at: number): void =>
  assert.deepStrictEqual(
    [answer.status, answer.error?.code, answer.error?.type],
    [502, "upstream_error", "server_error"],
    `cut at ${at}: ${answer.raw}`
  )

const assertWhole = (answer: ChatAnswer, at: number): void =>
  assert.deepStrictEqual(
    [answer.status, answer.text, answer.error, answer.isDone, chargedOf(answer)],
    [200, recordedText, undefined, true, wholePrice],
    `cut at ${at}: ${answer.raw}`
  )

/** A stream that was cut after something was shown. */
const assertBrokenOff = (answer: ChatAnswer, at: number): void =>
  assert.deepStrictEqual(
    [answer.status, answer.text, answer.finishReason, answer.isDone, chargedOf(answer)],
    [200, saidIn(at), "error", true, 0n],
    `cut at ${at}: ${answer.raw}`
  )

layer(ScriptedServer.layer([modelEntry(cutModel), modelEntry(good)]), {
  excludeTestServices: true
})("an upstream whose answer is cut at any byte", (it) => {
  const withCuts = (run: (caller: Caller) => Promise<bigint>) =>
    Effect.gen(function* () {
      const { caller, settled, upstream } = yield* ScriptedServer
      upstream.script(cutModel, cut)
      upstream.script(good, whole)
      yield* Effect.promise(async () => {
        const asker = await caller(10)
        await settled([asker], await run(asker))
      })
    })

  it.effect("plain: is 502 and costs nothing", () =>
    withCuts((caller) => everyCut(caller, cutModel, plainRecording.length, {}, assertFailed))
  )

  it.effect("plain: the next member answers, as if nothing had happened", () =>
    withCuts(async (caller) =>
      everyCut(caller, await caller.collect([cutModel, good]), plainRecording.length, {}, (answer, at) => {
        assertWhole(answer, at)
        assert.deepInclude(answer.router, { attempts: 2, resolved: good })
      })
    )
  )

  it.effect(
    "streamed: is 502 before the first word, then an error chunk, and whole once usage is there",
    () =>
      withCuts((caller) =>
        everyCut(caller, cutModel, streamRecording.length, { stream: true }, (answer, at) => {
          if (saidIn(at) === "") assertFailed(answer, at)
          else if (at < finishEnd) assertBrokenOff(answer, at)
          else if (at >= usageEnd) assertWhole(answer, at)
          else {
            // All text was sent and its token count is unknown: it is free with an error, or counted without.
            const isFree = chargedOf(answer) === 0n
            assert.deepStrictEqual([answer.text, isFree], [recordedText, answer.error !== undefined])
          }
        })
      )
  )

  it.effect("streamed: the next member answers before the first word, and nobody after it", () =>
    withCuts(async (caller) =>
      everyCut(caller, await caller.collect([cutModel, good]), finishEnd, { stream: true }, (answer, at) => {
        if (saidIn(at) !== "") return assertBrokenOff(answer, at)
        assertWhole(answer, at)
        assert.deepInclude(answer.router, { attempts: 2, resolved: good })
      })
    )
  )

  for (const [recording, { bytes, stream }] of Object.entries(otherRecordings)) {
    it.effect(`${recording}: ends with an answer or an error, and is paid only as an answer`, () =>
      withCuts((caller) =>
        everyCut(caller, cutModel, bytes.length + 1, { recording, stream }, (answer, at) => {
          const words = `cut at ${at}: ${answer.raw}`
          assert.include([200, 429, 502], answer.status, words)
          assert.isTrue(answer.isDone, words)
          if (answer.error === undefined) assert.isTrue(chargedOf(answer) > 0n, words)
          else assert.strictEqual(chargedOf(answer), 0n, words)
          if (answer.status === 200 && answer.error !== undefined) {
            assert.strictEqual(answer.finishReason, "error", words)
          }
        })
      )
    )
  }
})
