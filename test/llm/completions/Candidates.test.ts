import { assert, describe, it } from "@effect/vitest"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { ParsedBody } from "#src/llm/requests/CallBody.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { CollectionRow } from "#schemas/llm/Collection.ts"
import { resolve } from "#src/llm/calls/Candidates.ts"
import { catalogueModel } from "./Models.ts"

const models: ReadonlyArray<CatalogueModel> = [
  catalogueModel({ id: "text/one", hasTools: true }),
  catalogueModel({ id: "text/two" }),
  catalogueModel({ id: "any/model", takesAnything: true }),
  catalogueModel({ id: "vision/one", isVision: true }),
  catalogueModel({ id: "vision/tools", isVision: true, hasTools: true })
]
let fetchedAt: Date | undefined = new Date(0)
const catalogue = {
  get: (id: string) => models.find((model) => model.id === id),
  status: () => ({ models: models.length, leftOut: 0, fetchedAt, isStale: false })
}

const collection = (slug: string, members: ReadonlyArray<string>, autoRoute = true): CollectionRow => ({
  id: `col_${slug}`,
  user_id: "usr_1",
  name: slug,
  slug,
  auto_route: autoRoute,
  models: members,
  created_at: new Date(0)
})
const rows: ReadonlyArray<CollectionRow> = [
  collection("mixed", ["gone/model", "text/one", "vision/one", "vision/tools", "text/two"]),
  collection("manual", ["gone/model", "text/two", "vision/one", "text/one", "vision/tools"], false),
  collection("empty", ["gone/model"]),
  collection("blind", ["text/one", "text/two"])
]
const collections = {
  by: (_: "slug", key: string) => rows.find(({ slug, user_id }) => `${user_id}/${slug}` === key)
}

const account: Principal = {
  id: "key_1",
  keyId: "key_1",
  keyName: "test",
  kind: "account",
  ownerId: "usr_1",
  scopes: ["full"],
  expiresAt: null,
  role: "user",
  models: null,
  collections: null,
  rateLimitPerMinute: null
}
const scoped = (fields: Partial<Principal>): Principal => ({ ...account, kind: "router", ...fields })

const request = (model: string, fields: Partial<ChatRequest> = {}): ChatRequest => ({
  source: new ParsedBody({}, false),
  messageCount: 0,
  model,
  models: [],
  stream: false,
  includeUsage: false,
  hasTools: false,
  imageCount: 0,
  attachments: 0,
  extras: 0,
  asksForThoughts: false,
  textBytes: 0,
  textLength: 0,
  maxTokens: undefined,
  choices: 1,
  ...fields
})

/**
 * The models asked, stage by stage: `vision,vision > primary,primary`; or the status, code and parameter of a refusal.
 */
const asked = (model: string, fields: Partial<ChatRequest> = {}, key = account): string => {
  const target = resolve(key, request(model, fields), catalogue, collections)
  if ("status" in target) return `${target.status} ${target.code} ${target.param}`
  const [vision, primary] = [target.vision, target.primary].map((stage) =>
    stage.map(({ id }) => id).join(",")
  )
  return vision === "" ? `${primary}` : `${vision} > ${primary}`
}

const refused = "403 model_not_allowed model"

describe("who answers a request", () => {
  it("is the model that was asked for, then the caller's own fallbacks, each once, as far as they are there", () => {
    assert.strictEqual(asked("text/one"), "text/one")
    const models = ["text/two", "gone/model", "text/one", "vision/one", "text/two"]
    assert.strictEqual(asked("text/one", { models }), "text/one,text/two,vision/one")
    assert.strictEqual(asked("gone/model", { models: ["text/two"] }), "text/two")
    assert.strictEqual(asked("gone/model"), "404 model_not_found model")
    assert.strictEqual(asked("gone/model", { models: ["gone/too"] }), "404 model_not_found model")
    assert.strictEqual(asked("text/two", { hasTools: true }), "text/two", "as the caller wants it")
  })

  it("is nobody where images are sent to what the list says takes none", () => {
    const images = { imageCount: 1 }
    assert.strictEqual(asked("text/one", images), "400 invalid_value messages")
    assert.strictEqual(asked("text/one", { ...images, models: ["text/two"] }), "400 invalid_value messages")
    assert.strictEqual(asked("text/one", { ...images, models: ["vision/one"] }), "text/one,vision/one")
    assert.strictEqual(asked("collection/blind", images), "400 invalid_value messages")
    assert.strictEqual(asked("any/model", images), "any/model", "the list does not say what it takes")
  })

  it("is known only once there has been a list", () => {
    fetchedAt = undefined
    assert.strictEqual(asked("gone/model"), "503 no_available_model null")
    fetchedAt = new Date(0)
  })

  it("is a collection's members in their order, as far as they are there", () => {
    assert.strictEqual(asked("collection/mixed"), "text/one,vision/one,vision/tools,text/two")
    assert.strictEqual(asked("collection/manual"), "text/two", "the first one without auto-route")
    assert.strictEqual(asked("collection/empty"), "503 no_available_model null")
    assert.strictEqual(asked("collection/none"), "404 model_not_found model")
    assert.strictEqual(asked("collection/"), "404 model_not_found model")
    assert.strictEqual(asked("COLLECTION/mixed"), "404 model_not_found model")
  })

  it("is the members that can call tools, where there are any and auto-route is on", () => {
    assert.strictEqual(asked("collection/mixed", { hasTools: true }), "text/one,vision/tools")
    assert.strictEqual(asked("collection/manual", { hasTools: true }), "text/two")
  })

  it("sees the images first where some members see and others do not", () => {
    const images = { imageCount: 1 }
    assert.strictEqual(asked("collection/mixed", images), "vision/one,vision/tools > text/one,text/two")
    assert.strictEqual(asked("collection/manual", images), "vision/one > text/two")
    // A describing model need not call tools; an answering one has to.
    const withTools = { imageCount: 1, hasTools: true }
    assert.strictEqual(asked("collection/mixed", withTools), "vision/one,vision/tools > text/one")
  })
})

describe("a key that is limited", () => {
  it("to models reaches these alone, and nothing of it tells what else there is", () => {
    const key = scoped({ models: ["text/one", "text/two"] })
    assert.strictEqual(asked("text/one", { models: ["text/two"] }, key), "text/one,text/two")
    const [beyond, unknown] = ["vision/one", "gone/model"]
    assert.strictEqual(asked(beyond, {}, key), refused)
    assert.strictEqual(asked(unknown, {}, key), refused)
    const fallback = { models: ["text/two", beyond] }
    assert.strictEqual(asked("text/one", fallback, key), "403 model_not_allowed models[1]")
    for (const slug of ["mixed", "none", "empty"])
      assert.strictEqual(asked(`collection/${slug}`, {}, key), refused)
  })

  it("to collections reaches models only through them", () => {
    const key = scoped({ collections: ["col_manual"] })
    assert.strictEqual(asked("collection/manual", {}, key), "text/two")
    assert.strictEqual(asked("text/two", {}, key), refused)
    assert.strictEqual(asked("gone/model", {}, key), refused)
    for (const slug of ["mixed", "none", ""])
      assert.strictEqual(asked(`collection/${slug}`, {}, key), refused)
    // Its list of fallbacks is no way around: a collection has its own members.
    assert.strictEqual(asked("collection/manual", { models: ["vision/one"] }, key), "text/two")
  })

  it("to both reaches the models and the collections that it names", () => {
    const key = scoped({ models: ["text/one"], collections: ["col_manual"] })
    assert.strictEqual(asked("text/one", {}, key), "text/one")
    assert.strictEqual(asked("collection/manual", {}, key), "text/two")
    assert.strictEqual(asked("text/two", {}, key), refused)
    assert.strictEqual(asked("collection/mixed", {}, key), refused)
  })

  it("to nothing reaches nothing", () => {
    for (const key of [scoped({ models: [] }), scoped({ collections: [] })]) {
      assert.strictEqual(asked("text/one", {}, key), refused)
      assert.strictEqual(asked("collection/mixed", {}, key), refused)
    }
  })

  it("has the collections of its own owner, never another's of the same name", () => {
    assert.strictEqual(
      asked("collection/mixed", {}, { ...account, ownerId: "usr_2" }),
      "404 model_not_found model"
    )
  })
})
