import { Effect } from "effect"
import { assert } from "@effect/vitest"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "../Caller.ts"
import type { ChatAnswer } from "../ChatClient.ts"
import { ScriptedServer } from "../upstream/ScriptedServer.ts"
import type { AskedOf, Script, ScriptedUpstream } from "../upstream/ScriptedUpstream.ts"

type Scripted = typeof ScriptedServer.Service

/** A test's operations on a running server of completions and the upstream behind it. */
export interface Stage extends Scripted {
  /** the models' answers from now on, by their id */
  readonly play: (scripts: Readonly<Record<string, Script>>) => void
  /** the upstream's requests from here on */
  readonly listen: () => () => ReadonlyArray<AskedOf>
}

/** Runs a test that is written as a promise. */
export const onStage = (run: (stage: Stage) => Promise<void>) =>
  Effect.flatMap(ScriptedServer, (scripted) => {
    const { upstream } = scripted
    return Effect.promise(() =>
      run({
        ...scripted,
        play: (scripts) => {
          for (const [model, script] of Object.entries(scripts)) upstream.script(model, script)
        },
        listen: () => asked(upstream)
      })
    )
  })

const asked = (upstream: ScriptedUpstream) => {
  const before = upstream.asked.length
  return () => upstream.asked.slice(before)
}

/** Pico-USD that the answer says were charged. */
export const chargeIn = ({ router }: ChatAnswer): bigint => picoOfNumber(router?.charged_usd ?? 0) ?? 0n

/** Waits until the credits say that so much was spent, in USD as the answers said it. */
export const spends = (caller: Caller, usd: number): Promise<void> =>
  until("the credits say what was spent", async () => {
    const { lifetime_spent_usd: spent } = await caller.credits()
    return spent === usd ? undefined : `${spent} USD spent of ${usd}`
  })

/** An error that came with a status. */
export const assertFault = (
  answer: ChatAnswer,
  status: number,
  type: string,
  code: string | null,
  param: string | null = null
): string => {
  assert.strictEqual(answer.status, status, answer.raw)
  const { message, ...rest } = answer.error ?? assert.fail(answer.raw)
  assert.deepStrictEqual(rest, { type, code, param }, answer.raw)
  assert.deepStrictEqual(Object.keys(JSON.parse(answer.raw)), ["error"])
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/)
  return message
}

/** The usage that an answer tells: a stream adds what was charged. */
export const toldUsage = (answer: ChatAnswer, used: object, isStream: boolean): object =>
  isStream ? { ...used, cost: answer.router?.charged_usd } : used
