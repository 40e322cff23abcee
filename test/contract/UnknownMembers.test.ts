import fc from "fast-check"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { jsonFaultOf } from "#schemas/core/JsonFitness.ts"
import { signIn, tokenOf } from "#test/accounts/sessions/SignedIn.ts"
import { makeStage } from "#test/notify/Stage.ts"
import { joined, openProject, subscription } from "#test/notify/subscribers/SubscriberStage.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { type JsonSchema, valuesOf } from "./Generated.ts"
import { definitions, operations } from "./Operations.ts"

const seed = Date.now() % 2_147_483_647

const resolved = (schema: JsonSchema): JsonSchema => {
  const name = schema.$ref?.split("/").at(-1)
  return name === undefined ? schema : (definitions[name] ?? {})
}

/** The objects of a body that have no other members than those in the document, by the path to each. */
const closedIn = (
  schema: JsonSchema,
  path: ReadonlyArray<string> = []
): ReadonlyArray<ReadonlyArray<string>> => {
  const { additionalProperties, properties = {} } = resolved(schema)
  const inner = Object.entries(properties).flatMap(([name, property]) => closedIn(property, [...path, name]))
  return additionalProperties === false ? [path, ...inner] : inner
}

/** A path with ids of the right form that name nothing: a body is refused before anything is looked for. */
const pathWith = (path: string): string => {
  const prefix = { sites: "st", keys: "key", users: "usr", collections: "col", projects: "pjt" }
  return path.replace(/(\w+)\/\{\w+\}/g, (_, room: string) =>
    room in prefix ? `${room}/${prefix[room as keyof typeof prefix]}_${"0".repeat(22)}` : `${room}/acme`
  )
}

const withMember = (body: unknown, [first, ...rest]: ReadonlyArray<string>, name: string): unknown => {
  const record = typeof body === "object" && body !== null ? body : {}
  const inner: unknown = first === undefined ? undefined : Reflect.get(record, first)
  return first === undefined
    ? { ...record, [name]: 1 }
    : { ...record, [first]: withMember(inner, rest, name) }
}

/** Values that no store can keep are refused before members are looked at. */
const isStorable = (value: unknown): boolean => jsonFaultOf(value, { isNulRefused: true }) === undefined

const json = operations.flatMap((operation) =>
  operation.bodies.flatMap(([contentType, schema]) =>
    contentType === "application/json"
      ? closedIn(schema).map((path) => ({ ...operation, schema, closed: path }))
      : []
  )
)

layer(TestServer.shared, { excludeTestServices: true })("a body", (it) => {
  it.effect(`with a member that its schema does not have is refused by name (seed ${seed})`, () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      assert.isAbove(json.length, 12)
      const { link } = yield* openProject(yield* makeStage)
      const { token } = yield* joined(link, { push: subscription() })
      const { adminKey } = yield* TestServer
      const person = yield* Effect.flatMap(signIn(adminKey), tokenOf)
      for (const { closed, method, path, schema } of json) {
        const [body] = fc.sample(valuesOf(schema, definitions).filter(isStorable), { seed, numRuns: 1 })
        for (const name of ["expires", "model", "__proto__", "€ a", "n".repeat(300)]) {
          const given = JSON.stringify(withMember(body, closed, "a member")).replace("a member", name)
          const answer = yield* ask(method, pathWith(path), {
            ...(path.startsWith("/api/v1/subscriber") && { key: token }),
            ...(path.startsWith("/api/cli/auth/") && { key: person }),
            headers: { "content-type": "application/json" },
            body: given
          })
          const note = `${method} ${path} ${given}`
          assert.strictEqual(answer.status, 400, note)
          const { error } = answer.json as { error: string | { message: string; param: string } }
          const field = [...closed, name.slice(0, 100)].join(".")
          if (typeof error === "string") assert.strictEqual(error, `${field}: is not known here`, note)
          else assert.deepInclude(error, { message: `${field}: is not known here`, param: field }, note)
        }
      }
    })
  )

  it.effect("makes no unlimited key of a misspelt restriction", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const key = { name: "t", kind: "router" }
      for (const field of ["model", "spend_limit", "expiresAt"]) {
        const { json, status } = yield* ask("POST", "/api/v1/keys", { json: { ...key, [field]: "x" } })
        assert.deepInclude((json as { error: object }).error, { param: field })
        assert.strictEqual(status, 400)
      }
      assert.strictEqual((yield* ask("POST", "/api/v1/keys", { json: key })).status, 201)
    })
  )
})

describe("the document", () => {
  it("leaves open what takes any member: events, for those that a newer script sends, messages, and what goes to models", () => {
    for (const name of ["BrowserEvent", "CollectEvent", "ChatRequest", "EmbeddingsRequest", "NewMessage"]) {
      const schema = definitions[name]
      assert.isDefined(schema, name)
      assert.notStrictEqual(schema.additionalProperties, false, name)
    }
  })
})
