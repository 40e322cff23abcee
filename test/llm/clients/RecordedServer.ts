import { assert } from "@effect/vitest"
import { Context, ManagedRuntime } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "../Caller.ts"
import {
  event,
  finishes,
  recordedEvents,
  recordedText,
  recordedUsage,
  streamOf,
  tells
} from "../upstream/Recordings.ts"
import { modelEntry } from "../upstream/ScriptedServer.ts"
import { startScriptedUpstream } from "../upstream/ScriptedUpstream.ts"

/** Models whose streams are recorded, for clients that are to read them to their end. */
export const recorded = { says: "acme/says", calls: "acme/calls", breaks: "acme/breaks" } as const

const begins = recordedEvents.slice(0, 1)

const callsTool = (fields: object): string =>
  event({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...fields }] }, finish_reason: null }] })

const failure = { code: 502, message: "Überlastet" }

const streams: Readonly<Record<string, ReadonlyArray<string>>> = {
  [recorded.says]: recordedEvents,
  [recorded.calls]: [
    ...begins,
    callsTool({ id: "call_1", type: "function", function: { name: "weather", arguments: "" } }),
    callsTool({ function: { arguments: '{"city":' } }),
    callsTool({ function: { arguments: '"Köln"}' } }),
    finishes("tool_calls"),
    tells(),
    "data: [DONE]\n\n"
  ],
  [recorded.breaks]: [...recordedEvents.slice(0, 2), finishes("error", { error: failure })]
}

/** A running server over these models, and a user with 5 USD. */
export interface RecordedServer {
  readonly caller: Caller
  readonly baseURL: string
  readonly dispose: () => Promise<void>
}

export const startRecordedServer = async (): Promise<RecordedServer> => {
  const upstream = await startScriptedUpstream({
    models: Object.values(recorded).map((id) => modelEntry(id))
  })
  for (const [model, events] of Object.entries(streams))
    upstream.script(model, () => [{ send: streamOf(events) }])
  const runtime = ManagedRuntime.make(TestServer.own({ upstreamUrl: upstream.url }))
  const dispose = async (): Promise<void> => {
    await runtime.dispose()
    await upstream.close()
  }
  try {
    const { server } = Context.get(await runtime.context(), TestServer)
    return { caller: await makeCaller(server, 5), baseURL: `${server.url}/api/v1`, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** A stream as a client reads it; undefined for parts it does not show its users. */
export interface Heard {
  readonly id?: string | null | undefined
  readonly text: string
  readonly finishReason?: string | null | undefined
  readonly promptTokens?: number | null | undefined
  readonly completionTokens?: number | null | undefined
  /** USD */
  readonly cost?: number | null | undefined
  /** calls of tools, with their arguments read */
  readonly calls?: ReadonlyArray<{ readonly name: string; readonly args: unknown }>
  /** the error that it threw or handed out; "" for none */
  readonly error?: string
}

/** One client, reading the streams of `recorded`. Prompts are one message, with a tool `weather` of one text, `city`. */
export interface StreamReader {
  readonly name: string
  /** its output besides the text */
  readonly tells: ReadonlyArray<"id" | "usage" | "cost">
  readonly read: (model: string) => Promise<Heard>
}

/** With the markup of 2 %. */
const charged = 0.000_012_586_8

const assertTold = (heard: Heard, { name, tells }: StreamReader): void => {
  if (tells.includes("id")) assert.strictEqual(heard.id, "gen-1", name)
  if (tells.includes("usage")) {
    const { completion_tokens: completion, prompt_tokens: prompt } = recordedUsage
    assert.deepStrictEqual([heard.promptTokens, heard.completionTokens], [prompt, completion], name)
  }
  if (tells.includes("cost")) assert.strictEqual(heard.cost, charged, name)
}

/** Text, end, id and usage of a stream that says something. */
export const assertHearsText = (heard: Heard, reader: StreamReader): void => {
  assert.deepStrictEqual([heard.text, heard.error ?? ""], [recordedText, ""], reader.name)
  assert.strictEqual(heard.finishReason, "stop", reader.name)
  assertTold(heard, reader)
}

export const assertHearsCall = (heard: Heard, reader: StreamReader): void => {
  const told = `${reader.name}: ${heard.error ?? ""}`
  assert.deepStrictEqual(heard.calls, [{ name: "weather", args: { city: "Köln" } }], told)
  assert.match(heard.finishReason ?? "", /^tool[_-]calls$/, reader.name)
  assertTold(heard, reader)
}

/** It has to say that the stream failed, after what came of it. */
export const assertHearsError = (heard: Heard, { name }: StreamReader): void => {
  assert.strictEqual(heard.text, "Grüße,", `${name}: ${heard.error ?? ""}`)
  assert.include(heard.error, "Überlastet", name)
}
