import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Validator } from "@seriousme/openapi-schema-validator"
import { HttpApi, OpenApi } from "effect/http-api"
import { PublishedApi } from "#src/PublishedApi.ts"

const golden = join(import.meta.dirname, "openapi.json")
const spec = OpenApi.fromApi(PublishedApi)
const printed = `${JSON.stringify(spec, null, 2)}\n`

/** The document's operations of a path, by method. */
const operationsOf = (path: string): ReadonlyMap<string, { operationId: string; summary?: string }> =>
  new Map(Object.entries(JSON.parse(JSON.stringify(spec.paths[path] ?? {}))))

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: object
}

describe("/openapi.json", () => {
  it("is a valid OpenAPI 3.1 document", async () => {
    const validator = new Validator()
    const result = await validator.validate(structuredClone({ ...spec }))
    assert.deepStrictEqual(result.errors ?? [], [])
    assert.isTrue(result.valid)
    assert.match(spec.openapi, /^3\.1\./)
  })

  it("changes only on purpose (UPDATE_GOLDEN=1 writes the copy anew)", () => {
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(golden, printed)
    assert.strictEqual(printed, readFileSync(golden, "utf8"))
  })

  it("covers every endpoint with a summary, its errors and an operation id of its own", () => {
    const ids = new Set<string>()
    HttpApi.reflect(PublishedApi, {
      onGroup() {},
      onEndpoint({ endpoint }) {
        const path = endpoint.path.replace(/:(\w+)/g, "{$1}")
        const operation = operationsOf(path).get(endpoint.method.toLowerCase())
        assert.isDefined(operation, `${endpoint.method} ${path}`)
        assert.isString(operation.summary, `${endpoint.method} ${path} has no summary`)
        assert.isFalse(ids.has(operation.operationId), `${operation.operationId} twice`)
        ids.add(operation.operationId)
      }
    })
    assert.isAbove(ids.size, 10)
  })

  it("says of every query parameter what it takes: more than a type", () => {
    const paths: Readonly<
      Record<string, Readonly<Record<string, { parameters?: ReadonlyArray<Parameter> }>>>
    > = JSON.parse(JSON.stringify(spec.paths))
    for (const [path, operations] of Object.entries(paths)) {
      for (const { parameters = [] } of Object.values(operations)) {
        for (const { in: place, name, schema } of parameters) {
          if (place === "query") assert.isAbove(Object.keys(schema).length, 1, `${path} ${name}`)
        }
      }
    }
  })
})
