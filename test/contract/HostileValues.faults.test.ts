import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"
import { valuesOf } from "./Generated.ts"
import {
  type Asker,
  definitions,
  form,
  headersOf,
  isCall,
  makeAsker,
  makeResource,
  type Operation,
  operations,
  pathOf,
  worthTrying
} from "./Operations.ts"

/**
 * Good requests of every operation with one value in them that a store, a log or a peer cannot carry. None may be answered
 * 5xx, and none may leave anything behind that stops what comes after it. HOSTILE_REQUESTS sets how many per endpoint,
 * HOSTILE_SEED repeats a run.
 */
const perEndpoint = Number(process.env["HOSTILE_REQUESTS"] ?? 30)
/** Requests of one endpoint at the same time: they wait for stores. */
const senders = 4
const seed = Number(process.env["HOSTILE_SEED"] ?? Date.now() % 2_147_483_647)

/** Numbers that no JSON writer makes are put in where these texts are. */
const rawNumbers: ReadonlyArray<readonly [placeholder: string, raw: string]> = [
  ["@@huge@@", "1e400"],
  ["@@tiny@@", "-1e400"],
  ["@@double@@", "1.7976931348623157e308"],
  ["@@digits@@", "9".repeat(400)],
  ["@@unsafe@@", "9007199254740993"],
  ["@@int8@@", "9223372036854775808"],
  ["@@int4@@", "2147483648"],
  ["@@negative@@", "-9223372036854775809"]
]

const hostileTexts = [
  "\ud800",
  "a\udfffb",
  "\udc00\ud800",
  "a\u0000b",
  "\u0000",
  "\uffff",
  "\ufffe\u202e",
  "é".repeat(300)
]
const hostileValues: ReadonlyArray<unknown> = [
  ...hostileTexts,
  ...rawNumbers.map(([placeholder]) => placeholder)
]

/** Hostile values in percent-encoding: NUL, a surrogate in UTF-8, half a sequence, invalid UTF-8, and numbers. */
const hostileEncoded = [
  "%00",
  "a%00b",
  "%ED%A0%80",
  "%F0%9F",
  "%FF%FE",
  "%EF%BF%BF",
  "1e400",
  "9007199254740993",
  "9".repeat(400)
]

/** Every value reachable from here, as a way to put another in its place. */
const placesIn = (
  value: unknown,
  put: (other: unknown) => unknown
): ReadonlyArray<(other: unknown) => unknown> => {
  if (typeof value !== "object" || value === null) return [put]
  const below = Object.entries(value).flatMap(([name, member]) =>
    placesIn(member, (other) =>
      put(
        Array.isArray(value)
          ? value.map((one, index) => (String(index) === name ? other : one))
          : { ...value, [name]: other }
      )
    )
  )
  const named = Array.isArray(value) ? [] : [(other: unknown) => put({ ...value, [String(other)]: 1 })]
  return [...below, ...named]
}

interface Hostile {
  readonly where: "body" | "query" | "path" | "header"
  readonly body: readonly [contentType: string, value: unknown] | undefined
  readonly place: number
  readonly value: unknown
  readonly encoded: string
}

const hostileRequestsOf = (operation: Operation): fc.Arbitrary<Hostile> =>
  fc.record({
    where: fc.constantFrom<Hostile["where"]>(
      ...(operation.bodies.length > 0 ? (["body", "body", "body"] as const) : []),
      "query",
      "header",
      ...(operation.path.includes("{") ? (["path"] as const) : [])
    ),
    body:
      operation.bodies.length === 0
        ? fc.constant(undefined)
        : fc.oneof(
            ...operation.bodies.map(([contentType, schema]) =>
              fc.tuple(fc.constant(contentType), valuesOf(schema, definitions))
            )
          ),
    place: fc.nat(),
    value: fc.constantFrom(...hostileValues),
    encoded: fc.constantFrom(...hostileEncoded)
  })

let asker: Asker<ServerProcess>

const bodyOf = ({ body, place, value, where }: Hostile): string | FormData | null => {
  if (body === undefined) return null
  const [contentType, good] = body
  const isText = typeof value === "string" && !value.startsWith("@@")
  if (contentType === "multipart/form-data")
    return form(new Uint8Array([1, 2, 3]), where === "body" && isText ? String(value) : "a.txt")
  const sound = worthTrying(asker, good)
  const places = placesIn(sound, (other) => other)
  const spoilt = where === "body" ? (places[place % Math.max(places.length, 1)]?.(value) ?? value) : sound
  const text = contentType.includes("json") || typeof spoilt !== "string" ? JSON.stringify(spoilt) : spoilt
  return rawNumbers.reduce((raw, [placeholder, number]) => raw.replaceAll(`"${placeholder}"`, number), text)
}

const queryOf = (operation: Operation, { encoded, place, where }: Hostile): string => {
  const names = operation.parameters.filter((one) => one.in === "query").map(({ name }) => name)
  const name = names[place % Math.max(names.length, 1)] ?? "anything"
  return where === "query" ? `?${name}=${encoded}` : ""
}

const hostileHeaders = ["\u00ff\u00fe", "\u00ed\u00a0\u0080", "9".repeat(400), "x".repeat(3_000)]
const namedHeaders = [
  "idempotency-key",
  "user-agent",
  "x-request-id",
  "range",
  "if-none-match",
  "referer",
  "origin"
]

const send = async (operation: Operation, hostile: Hostile): Promise<number> => {
  const { encoded, place, where } = hostile
  const made = operation.path.includes("{id}") ? await makeResource(asker, operation) : ""
  const path = where === "path" ? operation.path.replace(/\{\w+\}/g, encoded) : pathOf(operation, made)
  const headers = headersOf(asker, operation)
  const contentType = hostile.body?.[0]
  if (contentType !== undefined && contentType !== "multipart/form-data")
    headers["content-type"] = contentType
  if (where === "header") {
    const header = namedHeaders[place % namedHeaders.length] ?? ""
    headers[header] = hostileHeaders[place % hostileHeaders.length] ?? ""
  }
  const url = `${asker.server.url}${path}${queryOf(operation, hostile)}`
  const response = await fetch(url, { method: operation.method, headers, body: bodyOf(hostile) })
  await response.arrayBuffer()
  return response.status
}

/** Checks that another user's requests succeed at once. */
const othersAreWell = async (): Promise<void> => {
  const { server, site } = asker
  const messages = [{ role: "user", content: "hello" }]
  const call = await ask(server, "POST", "/api/v1/chat/completions", {
    json: { model: "sandbox/free", messages }
  })
  assert.strictEqual(call.status, 200)
  for (const path of [
    "/usage",
    "/credits",
    "/keys",
    "/models",
    "/collections",
    `/sites/${site.id}/stats?period=24h`
  ]) {
    await until(`${path} answers`, async () => {
      const { body, status } = await ask(server, "GET", `/api/v1${path}`)
      return status === 200 ? undefined : `${status} ${JSON.stringify(body)}`
    })
  }
  const ready = await ask(server, "GET", "/readyz", { key: "" })
  assert.strictEqual(ready.status, 200)
  const verified = await ask(server, "GET", "/api/v1/admin/ledger/verify")
  assert.strictEqual(verified.status, 200, JSON.stringify(verified.body))
}

describe("requests with values that no store takes", () => {
  beforeAll(async () => {
    asker = await makeAsker(await startServer())
  })
  afterAll(() => asker.server.dispose())

  for (const operation of operations) {
    const name = `${operation.method} ${operation.path}`
    it(`${name} is never answered 5xx`, { timeout: 600_000 }, async () => {
      const left = fc.sample(hostileRequestsOf(operation), { numRuns: perEndpoint, seed })
      const sender = async (): Promise<void> => {
        for (let hostile = left.shift(); hostile !== undefined; hostile = left.shift()) {
          const status = await send(operation, hostile)
          // A model that has nothing to say is an upstream's failure.
          if (status === 502 && isCall(operation)) continue
          const shown = `HOSTILE_SEED=${seed} ${name} ${JSON.stringify(hostile)}`
          assert.isBelow(status, 500, `${shown}\n${asker.server.output().slice(-3_000)}`)
        }
      }
      await Promise.all(Array.from({ length: senders }, sender))
    })
  }

  it("are refused with the field's name where a call of a model has them", async () => {
    const refusals: ReadonlyArray<readonly [path: string, body: string, param: string]> = [
      [
        "/chat/completions",
        `{"model":"\\ud800","models":["sandbox/free"],"messages":[{"role":"user","content":"hi"}]}`,
        "model"
      ],
      [
        "/chat/completions",
        `{"model":"sandbox/free","messages":[{"role":"user","content":"\\udc00"}]}`,
        "messages[0].content"
      ],
      [
        "/chat/completions",
        `{"model":"sandbox/free","messages":[{"role":"user","content":"a"}],"seed":1e400}`,
        "seed"
      ],
      [
        "/chat/completions",
        `{"model":"sandbox/free","messages":[{"role":"user","content":"a"}],"metadata":{"x":[1e400]}}`,
        "metadata.x[0]"
      ],
      ["/embeddings", `{"model":"sandbox/embed","input":["a","\\ud83d"]}`, "input[1]"],
      ["/keys", `{"name":"\\ud800","kind":"router"}`, "name"],
      ["/collections", `{"name":"a\\u0000","models":["sandbox/free"]}`, "name"]
    ]
    for (const [path, body, param] of refusals) {
      const headers = { "content-type": "application/json" }
      const answer = await ask(asker.server, "POST", `/api/v1${path}`, { body, headers })
      assert.strictEqual(answer.status, 400, body)
      assert.strictEqual((answer.body as { error: { param: string } }).error.param, param, body)
    }
  })

  it("are refused in a frame of an agent, and mended in what its commands print", async () => {
    const socket = await AgentSocket.open(asker.server.url, asker.key)
    socket.say({ type: "prompt", id: "p1", text: "a\ud800" })
    const error = await socket.hear("error")
    assert.match(String(error["message"]), /^text: /)
    assert.strictEqual(error["fatal"], false)
    socket.say({ type: "tool.stream", callId: "c1", index: 0, stream: "stdout", data: "\ud83d" })
    await until("the output of a call that nobody made is answered", async () =>
      socket.heard.some(({ code }) => code === "unknown_call") ? undefined : JSON.stringify(socket.heard)
    )
    socket.leave()
  })

  it("leave everybody else as they were, after a restart as well", async () => {
    await othersAreWell()
    await asker.server.stop()
    await asker.server.start()
    await othersAreWell()
  })
})
