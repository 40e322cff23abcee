import { createHash } from "node:crypto"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import * as ReferenceRoutes from "#src/agents/reference/ReferenceRoutes.ts"
import * as DocsRoutes from "#src/docs/DocsRoutes.ts"
import { examplePath, otherBodies, requestExamples } from "#src/docs/api/RequestExamples.ts"
import { publish } from "#src/Publication.ts"
import { rooms } from "#src/Rooms.ts"
import { documentOf, groupsOf } from "#src/docs/api/Operations.ts"
import { sampleOf, unknownText } from "#src/docs/api/Samples.ts"
import type { Node } from "#src/docs/page/FieldRows.ts"

const api = publish(rooms)
const document = documentOf(api)
const groups = groupsOf(document)
const operations = groups.flatMap((group) => group.operations)

const server = HttpRouter.toWebHandler(Layer.merge(DocsRoutes.layerOf(api), ReferenceRoutes.layer), {
  disableLogger: true
})
const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  server.handler(new Request(`http://localhost${path}`, { headers }))

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: "document", components: document.components })

/** The faults of a value against its schema; "" where it has none. */
const faultsOf = (schema: Node, value: unknown): string => {
  const text = JSON.stringify(schema).replaceAll('"#/components', '"document#/components')
  const validate = ajv.compile(JSON.parse(text))
  return validate(value) ? "" : ajv.errorsText(validate.errors)
}

const jsonOf = (content: Readonly<Record<string, { readonly schema?: Node }>> | undefined) =>
  content?.["application/json"]?.schema

describe("the examples of the API's reference", () => {
  it("are one of every request that has a body, and their schemas take them", () => {
    const withBody = operations.filter(({ requestBody }) => requestBody !== undefined)
    assert.sameMembers(
      [...Object.keys(requestExamples), ...Object.keys(otherBodies)],
      withBody.map(({ operationId }) => operationId)
    )
    for (const { operationId, requestBody } of withBody) {
      const schema = jsonOf(requestBody?.content)
      if (schema !== undefined)
        assert.strictEqual(faultsOf(schema, requestExamples[operationId]), "", operationId)
    }
  })

  it("are one of every answer in JSON that its schema takes, and no field is `string`", () => {
    for (const { operationId, responses } of operations) {
      for (const { content } of Object.values(responses)) {
        const schema = jsonOf(content)
        if (schema === undefined) continue
        const sample = sampleOf(schema, document.components.schemas, "")
        const text = JSON.stringify(sample)
        assert.strictEqual(faultsOf(schema, sample), "", `${operationId}: ${text}`)
        assert.notInclude(text, '"string"', operationId)
        assert.notInclude(text, `"${unknownText}"`, operationId)
      }
    }
  })

  it("name paths without a parameter left", () => {
    for (const { path } of operations) assert.notMatch(examplePath(path), /[{}]/)
  })
})

describe("the API's reference at /docs", () => {
  it("has every operation of the document, and no link that leads nowhere", async () => {
    const page = await (await get("/docs")).text()
    const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => id)
    assert.strictEqual(new Set(ids).size, ids.length, "an id is used twice")
    const targets = Array.from(page.matchAll(/href="#([^"]+)"/g), ([, id = ""]) => id)
    assert.deepStrictEqual(
      targets.filter((id) => !ids.includes(id)),
      []
    )
    assert.isAbove(operations.length, 60)
    assert.strictEqual(operations.length, Object.values(document.paths).flatMap(Object.keys).length)
    for (const { path } of operations) assert.include(page, `</strong> ${path}</code>`)
    assert.match(page, /<html lang="en">/)
    assert.include(page, '<a href="/">Console</a>')
    // Bounds of what may be null are told as well.
    assert.match(page, /<code>rate_limit_per_minute<\/code>[^]*?<code>integer \| null<\/code>[^]*?1 to /)
    assert.include(page, '<a href="/docs/agent">Agent protocol</a>')
  })

  it("runs no script, asks nobody, and is in nobody's frame", async () => {
    for (const path of ["/docs", "/docs/agent"]) {
      const answer = await get(path)
      const page = await answer.text()
      assert.notMatch(page, /<script src|<script>|@import|url\(|<(img|link|iframe)/)
      const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? assert.fail("no style")
      const hash = createHash("sha256").update(style).digest("base64")
      assert.strictEqual(
        answer.headers.get("content-security-policy"),
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
      )
      assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
      assert.strictEqual(answer.headers.get("referrer-policy"), "no-referrer")
    }
  })

  it.each(["/docs", "/docs/agent", "/docs/agent.json", "/openapi.json"])(
    "sends %s in the smallest encoding, and once: 304 afterwards",
    async (path) => {
      const plain = await get(path)
      const text = await plain.text()
      assert.isNull(plain.headers.get("content-encoding"))
      for (const [encoding, decode] of [
        ["br", brotliDecompressSync],
        ["gzip", gunzipSync]
      ] as const) {
        const answer = await get(path, { "accept-encoding": encoding })
        assert.strictEqual(answer.headers.get("content-encoding"), encoding)
        assert.strictEqual(answer.headers.get("vary"), "Accept-Encoding")
        assert.strictEqual(answer.headers.get("cache-control"), "no-cache")
        const bytes = Buffer.from(await answer.arrayBuffer())
        assert.isBelow(bytes.length, 80_000)
        assert.strictEqual(decode(bytes).toString(), text)
        const etag = answer.headers.get("etag") ?? assert.fail("no etag")
        const again = await get(path, { "accept-encoding": encoding, "if-none-match": etag })
        assert.deepStrictEqual([again.status, await again.text()], [304, ""])
      }
    }
  )
})
