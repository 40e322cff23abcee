import fc from "fast-check"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Reachable } from "#test/harness/ApiClient.ts"
import { spoiled, valuesOf } from "./Generated.ts"
import {
  type Asker,
  definitions,
  form,
  headersOf,
  isCall,
  isObject,
  makeAsker,
  makeResource,
  type Operation,
  operations,
  pathOf,
  worthTrying
} from "./Operations.ts"

const seed = Number(process.env["GENERATED_SEED"] ?? Date.now() % 2_147_483_647)
const paths = new RegExp(process.env["GENERATED_PATHS"] ?? "")
const concurrency = 8

/** A server under test. */
export interface Tested extends Reachable {
  /** its log */
  readonly output: () => string
  readonly dispose: () => Promise<void>
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

const bodyOf = (asker: Asker, [contentType, value]: readonly [string, unknown]): string | FormData => {
  if (contentType === "multipart/form-data") {
    const data = form(new TextEncoder().encode(JSON.stringify(value)), "generated.bin")
    if (isObject(value))
      for (const [name, field] of Object.entries(value))
        if (name !== "file") data.append(name, typeof field === "string" ? field : JSON.stringify(field))
    return data
  }
  return JSON.stringify(worthTrying(asker, value))
}

const send = async (asker: Asker, operation: Operation, generated: Generated): Promise<number> => {
  const id =
    generated.id ?? (/\{(id|token)\}/.test(operation.path) ? await makeResource(asker, operation) : "")
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(generated.query)) query.set(name, String(value))
  const headers = headersOf(asker, operation)
  if (generated.body !== undefined && generated.body[0] !== "multipart/form-data") {
    headers["content-type"] = generated.body[0]
  }
  const body = generated.body === undefined ? null : bodyOf(asker, generated.body)
  const url = `${asker.server.url}${pathOf(operation, id)}?${query}`
  const response = await fetch(url, { method: operation.method, headers, body })
  await response.arrayBuffer()
  return response.status
}

/**
 * Requests made from the published document, most of them good and some of them spoiled, against a running server.
 * GENERATED_REQUESTS sets how many per endpoint, GENERATED_PATHS (a regular expression) which, GENERATED_SEED repeats a
 * run.
 */
export const describeGenerated = (requestsPerEndpoint: number, start: () => Promise<Tested>): void => {
  const perEndpoint = Number(process.env["GENERATED_REQUESTS"] ?? requestsPerEndpoint)
  let asker: Asker<Tested>
  beforeAll(async () => {
    asker = await makeAsker(await start())
  })
  afterAll(() => asker.server.dispose())

  const answered = new Map<string, Map<number, number>>()

  for (const operation of operations.filter(({ path }) => paths.test(path))) {
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
          const status = await send(asker, operation, request)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          // A model that has nothing to say is an upstream's failure.
          if (status === 502 && isCall(operation)) continue
          assert.isBelow(
            status,
            500,
            `GENERATED_SEED=${seed} ${name} ${JSON.stringify(request)}\n${asker.server.output()}`
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
}
