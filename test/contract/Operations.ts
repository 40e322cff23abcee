import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { PublishedApi } from "#src/PublishedApi.ts"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { threeVisits } from "#test/analytics/SiteVisits.ts"
import { subscription } from "#test/notify/subscribers/SubscriberStage.ts"
import { ask, createSite, type Reachable, type TestSite, textAt } from "#test/harness/ApiClient.ts"
import type { Definitions, JsonSchema } from "./Generated.ts"

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema: JsonSchema
}

export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly bodies: ReadonlyArray<readonly [contentType: string, schema: JsonSchema]>
  readonly secured: boolean
  /** names of the schemas of errors, by status */
  readonly refusals: Readonly<Record<number, string | undefined>>
}

interface OperationObject {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly security?: ReadonlyArray<unknown>
}

const document = JSON.parse(JSON.stringify(OpenApi.fromApi(PublishedApi)))
export const definitions: Definitions = document.components?.schemas ?? {}

/** Everything that the published document has. */
export const operations: ReadonlyArray<Operation> = Object.entries<Record<string, OperationObject>>(
  document.paths
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    parameters: operation.parameters ?? [],
    bodies: Object.entries(operation.requestBody?.content ?? {}).map(
      ([contentType, content]) => [contentType, content.schema] as const
    ),
    secured: (operation.security ?? []).length > 0,
    refusals: Object.fromEntries(
      Object.entries(operation.responses).map(([status, { content }]) => [
        status,
        content?.["application/json"]?.schema.$ref?.split("/").at(-1)
      ])
    )
  }))
)

/** A caller: a key of its own with a high rate, so that the requests meet the endpoints and not the bucket. */
export interface Asker<Server extends Reachable = Reachable> {
  readonly server: Server
  readonly key: string
  readonly site: TestSite
  /** a project key */
  readonly sender: string
  readonly subscriber: { readonly token: string; readonly link: string; readonly project: string }
}

export const makeAsker = async <Server extends Reachable>(server: Server): Promise<Asker<Server>> => {
  const json = { name: "generated", kind: "account", rate_limit_per_minute: 1_000_000 }
  const key = textAt(await ask(server, "POST", "/api/v1/keys", { json }), "key")
  const { body } = await ask(server, "GET", "/api/v1/users", { key })
  const [me] = (body as { readonly users: ReadonlyArray<{ readonly id: string }> }).users
  await ask(server, "POST", "/api/v1/credits/topups", { json: { user_id: me?.id, amount_usd: 100 } })
  const site = await createSite(server)
  const collected = await ask(server, "POST", "/api/v1/collect", { key: site.secret, json: threeVisits })
  assert.strictEqual(collected.status, 202)
  const project = await ask(server, "POST", "/api/v1/projects", {
    key,
    json: { name: "Sent to", slug: "sent-to" }
  })
  const link = textAt(project, "joinUrl").replace(/.*\//, "")
  const joined = await ask(server, "POST", `/api/v1/join/${link}`, {
    key: "",
    json: { timezone: "UTC", push: subscription() }
  })
  const token = textAt(joined, "settingsUrl").replace(/.*#/, "")
  const sender = { name: "sender", projects: ["sent-to"], rateLimitPerMinute: 6_000 }
  const made = await ask(server, "POST", "/api/v1/project-keys", { key, json: sender })
  const subscriber = { token, link, project: textAt(project, "id") }
  return { server, key, site, sender: textAt(made, "key"), subscriber }
}

let collections = 0
let collection: Promise<string> | undefined
let projectKey: Promise<string> | undefined
let device: Promise<string> | undefined
let session: Promise<AgentSocket> | undefined

export const form = (bytes: Uint8Array<ArrayBuffer>, filename: string): FormData => {
  const data = new FormData()
  data.set("file", new Blob([bytes]), filename)
  return data
}

const newEmail = (): string => `${process.pid}-${performance.now()}-${Math.random()}@example.org`

const makePlan = async ({ key, server }: Asker): Promise<string> => {
  const allowances = { hour: 1_000, day: 1_000, week: 1_000 }
  const json = { name: "Plan", price_usd: 1, scope: "all", covers_direct_api: false, models: "*", allowances }
  return textAt(await ask(server, "POST", "/api/v1/plans", { key, json }), "id")
}

/** Makes what notifications have, by the beginning of its paths. */
const notifyResources: ReadonlyArray<
  readonly [prefix: string, make: (asker: Asker, method: string) => Promise<string>]
> = [
  [
    "/api/v1/projects/",
    async ({ key, server }) => {
      const json = { name: "Generated", slug: `g${++collections}` }
      return textAt(await ask(server, "POST", "/api/v1/projects", { key, json }), "id")
    }
  ],
  [
    "/api/v1/project-keys/",
    async ({ key, server }, method) => {
      // A user has a limited number of them, too.
      const json = { name: "generated", projects: "all" }
      const made = () =>
        ask(server, "POST", "/api/v1/project-keys", { key, json }).then((answer) => textAt(answer, "id"))
      if (method === "DELETE") return made()
      projectKey ??= made()
      return projectKey
    }
  ],
  [
    "/api/v1/messages/",
    async ({ sender, server }) => {
      const json = { app: "generated", message: "generated" }
      const sent = await ask(server, "POST", "/api/v1/messages", { key: sender, json })
      const { messages } = sent.body as { readonly messages: ReadonlyArray<{ readonly id: string }> }
      return messages[0]?.id ?? assert.fail("nothing was sent")
    }
  ],
  ["/api/v1/join/", async ({ subscriber }) => subscriber.link],
  [
    "/api/v1/telegram-codes/",
    async ({ server, subscriber: { link } }) => {
      const json = { timezone: "UTC" }
      const made = await ask(server, "POST", `/api/v1/join/${link}/telegram`, { key: "", json })
      // An address has a limited number of them.
      return made.status === 201 ? textAt(made, "id") : "tgc_none"
    }
  ],
  ["/api/v1/subscriber/projects/", async ({ subscriber }) => subscriber.project],
  [
    "/api/v1/subscriber/channels/",
    async ({ server, subscriber: { token } }, method) => {
      // A test would leave this machine.
      if (method === "POST") return "chn_none"
      const json = { push: subscription() }
      const made = await ask(server, "POST", "/api/v1/subscriber/channels", { key: token, json })
      // A subscriber has a limited number of them.
      return made.status === 201 ? textAt(made, "id") : "chn_none"
    }
  ]
]

let domainsMade = 0

/** Makes what mail has, by the beginning of its paths. */
const mailResources: typeof notifyResources = [
  [
    "/api/v1/emails/domains/",
    // A user has a limited number of them, and each has a key that takes time to make.
    async ({ key, server }) => {
      const { body } = await ask(server, "GET", "/api/v1/emails/domains", { key })
      const [one] = (body as { readonly domains: ReadonlyArray<{ readonly id: string }> }).domains
      if (one !== undefined) return one.id
      const json = { name: `generated-${++domainsMade}.example` }
      return textAt(await ask(server, "POST", "/api/v1/emails/domains", { key, json }), "id")
    }
  ],
  [
    "/api/v1/emails/inbox/",
    async ({ key, server }) => {
      await sentMail({ key, server })
      const { body } = await ask(server, "GET", "/api/v1/emails/inbox?limit=1", { key })
      const { emails } = body as { readonly emails: ReadonlyArray<{ readonly id: string }> }
      return emails[0]?.id ?? "mdl_none"
    }
  ],
  [
    "/api/v1/emails/suppressions/",
    async ({ key, server }) => {
      const json = { address: `${randomUUID()}@example.org` }
      return textAt(await ask(server, "POST", "/api/v1/emails/suppressions", { key, json }), "id")
    }
  ],
  ["/api/v1/emails/", (asker) => sentMail(asker)]
]

const sentMail = async ({ key, server }: Pick<Asker, "key" | "server">): Promise<string> => {
  const json = { from: "a@example.com", to: "b@example.org", subject: "generated", text: "-", html: "-" }
  const id = textAt(await ask(server, "POST", "/api/v1/send", { key, json }), "message_id")
  await ask(server, "GET", `/api/v1/emails/${id}?wait=5`, { key })
  return id
}

/** Makes what shared files have, by the beginning of its paths. */
const filesResources: typeof notifyResources = [
  [
    "/api/devices/",
    async ({ key, server }, method) => {
      // A user has a limited number of them.
      const json = { name: "generated", platform: "web" }
      const made = () =>
        ask(server, "POST", "/api/devices", { key, json }).then((answer) => textAt(answer, "id"))
      if (method === "DELETE") return made()
      device ??= made()
      return device
    }
  ],
  [
    "/api/directories/",
    async ({ key, server }) => {
      const json = { name: `generated-${++collections}` }
      return textAt(await ask(server, "POST", "/api/directories", { key, json }), "id")
    }
  ],
  ["/api/files/", async (asker) => (await uploadOne(asker)).fileId],
  [
    "/api/trash/",
    async (asker) => {
      const { fileId } = await uploadOne(asker)
      return textAt(await ask(asker.server, "DELETE", `/api/files/${fileId}`, { key: asker.key }), "trashId")
    }
  ],
  ["/api/uploads/", async () => `upl_${"0".repeat(22)}`],
  ["/api/share-links/", async (asker) => makeLink(asker)],
  ["/direct/", async (asker) => makeLink(asker)]
]

const makeLink = async (asker: Asker): Promise<string> => {
  const { key, server } = asker
  const { fileId } = await uploadOne(asker)
  return textAt(await ask(server, "POST", "/api/share-links", { key, json: { fileId } }), "token")
}

const uploadOne = async ({ key, server }: Asker): Promise<{ readonly fileId: string }> => {
  const data = form(new Uint8Array([1]), `${++collections}.txt`)
  const { body } = await ask(server, "POST", "/api/upload", { key, form: data })
  const { files } = body as { readonly files: ReadonlyArray<{ readonly fileId: string }> }
  return files[0] ?? assert.fail("nothing was uploaded")
}

/** Makes a resource for a path with `{id}`, so that changing and deleting find something to work on. */
export const makeResource = async (asker: Asker, { method, path }: Operation): Promise<string> => {
  const { key, server, site } = asker
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
  if (path.startsWith("/api/v1/plans/")) return makePlan(asker)
  if (path.startsWith("/api/v1/subscriptions/")) {
    const user = await make("/api/v1/admin/users", { json: { email: newEmail(), name: "Generated" } })
    const json = {
      user_id: textAt(user, "id"),
      plan_id: await makePlan(asker),
      current_period_end: "2099-01-01T00:00:00Z"
    }
    return textAt(await make("/api/v1/subscriptions", { json }), "id")
  }
  const ofRoom = [...notifyResources, ...filesResources, ...mailResources].find(([prefix]) =>
    path.startsWith(prefix)
  )
  if (ofRoom !== undefined) return ofRoom[1](asker, method)
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

export const isCall = ({ path }: Operation): boolean => /\/(completions|embeddings)$/.test(path)

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether a value is worth a try: an event of an unknown site, or a call of an unknown model, mostly is not. */
export const worthTrying = ({ site }: Asker, value: unknown): unknown => {
  if (!isObject(value)) return value
  const { messages, model, s } = value
  return {
    ...value,
    ...(typeof s === "string" ? { s: site.id } : {}),
    ...(typeof model === "string" ? { model: messages === undefined ? "sandbox/embed" : "sandbox/free" } : {})
  }
}

/** @param id of the resource, where the path has one */
export const pathOf = ({ path }: Operation, id: string): string =>
  path
    .replace(/\{(id|token)\}/, encodeURIComponent(id))
    .replace("{provider}", "sandbox")
    .replace("{name}", "echo")

/** With the key that the operation asks for. */
export const headersOf = (
  { key, sender, site, subscriber }: Asker,
  { method, path, secured }: Operation
): Record<string, string> => {
  if (method === "POST" && /\/(attachments|mcp|messages)$/.test(path))
    return { authorization: `Bearer ${sender}` }
  if (path.endsWith("/collect")) return { authorization: `Bearer ${site.secret}` }
  // Its end, or its next link, would be the end of the token.
  if (
    path.startsWith("/api/v1/subscriber") &&
    !/^(DELETE .*subscriber|POST .*link)$/.test(`${method} ${path}`)
  )
    return { authorization: `Bearer ${subscriber.token}` }
  return secured ? { authorization: `Bearer ${key}` } : {}
}
