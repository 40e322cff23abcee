import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { PublishedApi } from "#schemas/Api.ts"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { threeVisits } from "#test/analytics/SiteVisits.ts"
import { ask, createSite, type TestSite, textAt } from "#test/integration/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/integration/ServerProcess.ts"
import { type Definitions, type JsonSchema, spoiled, valuesOf } from "./Generated.ts"

/**
 * Requests made from the published document, most of them good and some of them spoiled, against a running server.
 * GENERATED_REQUESTS sets how many per endpoint, GENERATED_SEED repeats a run.
 */
const perEndpoint = Number(process.env["GENERATED_REQUESTS"] ?? 100)
const seed = Number(process.env["GENERATED_SEED"] ?? Date.now() % 2_147_483_647)
const concurrency = 8

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: JsonSchema
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly bodies: ReadonlyArray<readonly [contentType: string, schema: JsonSchema]>
  readonly secured: boolean
}

interface OperationObject {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly security?: ReadonlyArray<unknown>
}

const document = JSON.parse(JSON.stringify(OpenApi.fromApi(PublishedApi)))
const definitions: Definitions = document.components?.schemas ?? {}

const operations: ReadonlyArray<Operation> = Object.entries<Record<string, OperationObject>>(
  document.paths
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    parameters: operation.parameters ?? [],
    bodies: Object.entries(operation.requestBody?.content ?? {}).map(
      ([contentType, content]) => [contentType, content.schema] as const
    ),
    secured: (operation.security ?? []).length > 0
  }))
)

let server: ServerProcess
let site: TestSite
let key: string
let collections = 0
let collection: Promise<string> | undefined
let session: Promise<AgentSocket> | undefined

beforeAll(async () => {
  server = await startServer()
  // A key of its own with the highest rate there is, so that the requests meet the endpoints and not the bucket.
  const json = { name: "generated", kind: "account", rate_limit_per_minute: 1_000_000 }
  key = textAt(await ask(server, "POST", "/api/v1/keys", { json }), "key")
  const { body } = await ask(server, "GET", "/api/v1/users", { key })
  const [me] = (body as { readonly users: ReadonlyArray<{ readonly id: string }> }).users
  await ask(server, "POST", "/api/v1/credits/topups", { json: { user_id: me?.id, amount_usd: 100 } })
  site = await createSite(server)
  const collected = await ask(server, "POST", "/api/v1/collect", { key: site.secret, json: threeVisits })
  assert.strictEqual(collected.status, 202)
})
afterAll(() => server.dispose())

const form = (bytes: Uint8Array<ArrayBuffer>, filename: string): FormData => {
  const data = new FormData()
  data.set("file", new Blob([bytes]), filename)
  return data
}

const newEmail = (): string => `${process.pid}-${performance.now()}-${Math.random()}@example.org`

const makePlan = async (): Promise<string> => {
  const allowances = { hour: 1_000, day: 1_000, week: 1_000 }
  const json = { name: "Plan", price_usd: 1, scope: "all", covers_direct_api: false, models: "*", allowances }
  return textAt(await ask(server, "POST", "/api/v1/plans", { key, json }), "id")
}

/** Makes a resource for a path with `{id}`, so that changing and deleting find something to work on. */
const makeResource = async ({ method, path }: Operation): Promise<string> => {
  const make = (target: string, body: object) => ask(server, "POST", target, { key, ...body })
  if (path.startsWith("/api/v1/files/")) {
    return textAt(await make("/api/v1/files", { form: form(new Uint8Array([1, 2, 3]), "a.txt") }), "id")
  }
  if (path.startsWith("/api/v1/keys/")) {
    return textAt(await make("/api/v1/keys", { json: { name: "generated", kind: "router" } }), "id")
  }
  if (path.startsWith("/api/v1/admin/users/")) {
    return textAt(await make("/api/v1/admin/users", { json: { email: newEmail(), name: "Generated" } }), "id")
  }
  if (path.startsWith("/api/v1/models/")) return "sandbox/echo"
  if (path.startsWith("/api/v1/collections/")) {
    // A user has a limited number of them, each with a name of its own.
    const json = { name: "Generated", slug: `g${++collections}`, models: ["sandbox/echo"] }
    if (method === "DELETE") return textAt(await make("/api/v1/collections", { json }), "id")
    collection ??= make("/api/v1/collections", { json }).then((answer) => textAt(answer, "id"))
    return collection
  }
  if (path.startsWith("/api/v1/plans/")) return makePlan()
  if (path.startsWith("/api/v1/subscriptions/")) {
    const user = await make("/api/v1/admin/users", { json: { email: newEmail(), name: "Generated" } })
    const json = {
      user_id: textAt(user, "id"),
      plan_id: await makePlan(),
      current_period_end: "2099-01-01T00:00:00Z"
    }
    return textAt(await make("/api/v1/subscriptions", { json }), "id")
  }
  if (path.startsWith("/api/v1/agent/sessions/")) {
    // One that has ended is read, and ended, as well.
    session ??= AgentSocket.open(server.url, key)
    return (await session).sessionId
  }
  assert.match(path, /\/sites\/\{id\}/)
  // Readers share one that has events; a public one has a rate of its own.
  if (method === "GET" && !path.includes("/public/")) return site.id
  if (!path.includes("/public/")) return (await createSite(server, "example.net", key)).id
  const json = { name: "Generated", domain: "example.net", public: true }
  return textAt(await make("/api/v1/sites", { json }), "site", "id")
}

interface Generated {
  /** undefined: a resource made for this request */
  readonly id: string | undefined
  readonly query: Readonly<Record<string, unknown>>
  readonly body: readonly [contentType: string, value: unknown] | undefined
}

const mostly = (good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 3, arbitrary: good }, { weight: 1, arbitrary: spoiled(good) })

const requestsOf = (operation: Operation): fc.Arbitrary<Generated> => {
  const queries = operation.parameters.filter((parameter) => parameter.in === "query")
  const required = queries.filter((parameter) => parameter.required === true)
  const optional = queries.filter((parameter) => parameter.required !== true)
  return fc.record({
    id: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.string() }),
    // Few at a time, as callers send them: of many one is always wrong.
    query: fc
      .subarray(optional, { maxLength: Math.min(4, optional.length) })
      .chain((chosen) =>
        fc.record(
          Object.fromEntries(
            [...required, ...chosen].map(({ name, schema }) => [
              name,
              fc.oneof(
                { weight: 9, arbitrary: valuesOf(schema, definitions) },
                { weight: 1, arbitrary: fc.string() }
              )
            ])
          ),
          { noNullPrototype: true }
        )
      ),
    body:
      operation.bodies.length === 0
        ? fc.constant(undefined)
        : fc.oneof(
            ...operation.bodies.map(([contentType, schema]) =>
              fc.tuple(fc.constant(contentType), mostly(valuesOf(schema, definitions)))
            )
          )
  })
}

const isCall = ({ path }: Operation): boolean => /\/(completions|embeddings)$/.test(path)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const bodyOf = ([contentType, value]: readonly [string, unknown]): string | FormData => {
  if (contentType === "multipart/form-data")
    return form(new TextEncoder().encode(JSON.stringify(value)), "generated.bin")
  return JSON.stringify(isObject(value) ? { ...value, ...known(value) } : value)
}

/** A browser event for a site, or a call of a model, that nobody has is not worth most of the tries. */
const known = ({ messages, model, s }: Readonly<Record<string, unknown>>): object => ({
  ...(typeof s === "string" ? { s: site.id } : {}),
  ...(typeof model === "string" ? { model: messages === undefined ? "sandbox/embed" : "sandbox/free" } : {})
})

const send = async (operation: Operation, generated: Generated): Promise<number> => {
  const id = generated.id ?? (operation.path.includes("{id}") ? await makeResource(operation) : "")
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(generated.query)) query.set(name, String(value))
  const path = operation.path
    .replace("{id}", encodeURIComponent(id))
    .replace("{provider}", "sandbox")
    .replace("{name}", "echo")
  const isCollect = operation.path.endsWith("/collect")
  const headers: Record<string, string> = isCollect
    ? { authorization: `Bearer ${site.secret}` }
    : operation.secured
      ? { authorization: `Bearer ${key}` }
      : {}
  if (generated.body !== undefined && generated.body[0] !== "multipart/form-data") {
    headers["content-type"] = generated.body[0]
  }
  const body = generated.body === undefined ? null : bodyOf(generated.body)
  const response = await fetch(`${server.url}${path}?${query}`, { method: operation.method, headers, body })
  await response.arrayBuffer()
  return response.status
}

describe("requests generated from the published document", () => {
  const answered = new Map<string, Map<number, number>>()

  for (const operation of operations) {
    const name = `${operation.method} ${operation.path}`
    it(`${name} never answers 5xx`, { timeout: 3_600_000 }, async () => {
      const requests = fc.sample(requestsOf(operation), { numRuns: perEndpoint, seed })
      const statuses = new Map<number, number>()
      answered.set(name, statuses)
      let next = 0
      const worker = async (): Promise<void> => {
        while (next < requests.length) {
          const request = requests[next++]
          if (request === undefined) return
          const status = await send(operation, request)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          // A model that has nothing to say is an upstream's failure.
          if (status === 502 && isCall(operation)) continue
          assert.isBelow(
            status,
            500,
            `GENERATED_SEED=${seed} ${name} ${JSON.stringify(request)}\n${server.output()}`
          )
        }
      }
      await Promise.all(Array.from({ length: concurrency }, worker))
    })
  }

  it("are answered 2xx in at least 30 % of the cases, so that they reach beyond validation", () => {
    const counts = [...answered.values()].flatMap((statuses) => [...statuses])
    const total = counts.reduce((sum, [, count]) => sum + count, 0)
    const good = counts.reduce((sum, [status, count]) => sum + (status < 300 ? count : 0), 0)
    const table = JSON.stringify(
      [...answered].map(([name, statuses]) => [name, Object.fromEntries(statuses)]),
      null,
      1
    )
    assert.isAbove(good / total, 0.3, `GENERATED_SEED=${seed}\n${table}`)
  })
})
