import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { at, request } from "#test/mcp/Asking.ts"
import { sendCases } from "./SendCases.ts"
import { api, makeStage } from "./Stage.ts"

/** Fields of a send that are at fault, and the one text of their error, whichever way they come. */
interface FaultCase {
  readonly given: Given
  readonly fault: string
}

const faults: ReadonlyArray<FaultCase> = sendCases.flatMap(([fields, fault]) =>
  fault === undefined ? [] : [{ given: { app: "a", message: "m", ...fields }, fault }]
)

/** JSON has no infinity, but numbers beyond a double. */
const jsonOf = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => (member === Infinity ? "infinite" : member)).replaceAll(
    '"infinite"',
    "1e400"
  )

const isLong = ({ given }: FaultCase): boolean => jsonOf(given).length > 300_000

export const longFaults = faults.filter((one) => isLong(one))
export const shortFaults = faults.filter((one) => !isLong(one))

type Given = Readonly<Record<string, unknown>>

const isList = (name: string): boolean => name === "project" || name === "attachments"

/** Undefined where a form cannot say it: its fields are text in UTF-8. */
const formOf = (given: Given): FormData | undefined => {
  const form = new FormData()
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue
    if (name === "body" && typeof value === "object")
      form.append(name, new Blob([jsonOf(value)], { type: "application/json" }), "")
    else if (isList(name)) {
      if (!Array.isArray(value)) return undefined
      form.append(name, jsonOf(value))
    } else if (typeof value === "string" && value.isWellFormed()) form.append(name, value)
    else return undefined
  }
  return form
}

/** A part with a type is a file to `FormData`: this is the form without it. */
const bodyOf = Effect.fnUntraced(function* (form: FormData) {
  const made = new Response(form)
  const bytes = Buffer.from(yield* Effect.promise(() => made.arrayBuffer()))
  const text = bytes.toString("latin1").replaceAll('; filename=""', "").replaceAll('; filename="blob"', "")
  return { body: Uint8Array.from(Buffer.from(text, "latin1")), type: made.headers.get("content-type") ?? "" }
})

const send = (key: string, path: string, body: string | Uint8Array<ArrayBuffer>, type = "application/json") =>
  Effect.flatMap(TestServer, ({ ask }) => ask("POST", path, { key, body, headers: { "content-type": type } }))

const errorOf = (answer: { readonly status: number; readonly json: unknown }) => [
  answer.status,
  at(answer.json, "error")
]

/** A key whose rate is not in the way, and that covers no project. */
const sender = Effect.flatMap(makeStage, (stage) => stage.projectKey({ rateLimitPerMinute: 6_000 }))

/** By JSON and by a plain body. */
export const tryJson = Effect.fnUntraced(function* (cases: ReadonlyArray<FaultCase>) {
  const key = yield* sender
  for (const { fault, given } of cases)
    for (const path of [`${api}/messages`, "/mcp"])
      assert.deepStrictEqual(errorOf(yield* send(key, path, jsonOf(given))), [400, fault], `${path} ${fault}`)
})

/** By a form; answers how many of them a form can say. */
export const tryForms = Effect.fnUntraced(function* (cases: ReadonlyArray<FaultCase>) {
  const key = yield* sender
  let asked = 0
  for (const { fault, given } of cases) {
    const form = formOf(given)
    if (form === undefined) continue
    const { body, type } = yield* bodyOf(form)
    assert.deepStrictEqual(errorOf(yield* send(key, `${api}/messages`, body, type)), [400, fault], fault)
    asked++
  }
  return asked
})

/** By calls of a tool, one batch of them: uploads have another name there, and there is no format. */
export const tryCalls = Effect.fnUntraced(function* (cases: ReadonlyArray<FaultCase>) {
  const { ask } = yield* TestServer
  const key = yield* sender
  const known = cases.filter(({ given }) => !("bodyFormat" in given))
  const batch = known.map(({ given: { attachments, ...given } }, id) =>
    request(
      "tools/call",
      { name: "send_notification", arguments: { ...given, attachment_ids: attachments } },
      id
    )
  )
  const { json, status } = yield* ask("POST", "/mcp", { key, body: jsonOf(batch) })
  assert.strictEqual(status, 200)
  for (const [index, { fault }] of known.entries()) {
    const result = at(json, index, "result")
    const expected = fault.replace(/^attachments/, "attachment_ids")
    assert.deepStrictEqual([at(result, "isError"), at(result, "content", 0, "text")], [true, expected])
  }
  return known.length
})
