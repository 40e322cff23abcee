import { assert, describe, it } from "@effect/vitest"
import { beforeAll } from "vitest"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { type Answer, ask, type Asked, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { form } from "./Operations.ts"

/** The same rules for every noun: whose it is, where it may be seen, and how its lists are read page by page. */
const api = "/api/v1"

interface Noun {
  readonly name: string
  readonly prefix: string
  /** makes one of the caller's, and answers its id */
  readonly make: (server: Reachable, owner: Caller) => Promise<string>
  /** the operations of those who may see it only: method, path and body */
  readonly operations: ReadonlyArray<readonly [method: string, path: string, asked?: Asked]>
  /** administrators see every user's */
  readonly isAdministered: boolean
  /** its last operation ends it, and it is still there to be read */
  readonly isKept?: true
  readonly notFound: unknown
  /** a read that shows it to its owner */
  readonly read: (id: string) => string
}

const nested = (message: string, code: string) => ({
  error: { message, type: "invalid_request_error", code, param: "id" }
})

const reads = ["stats", "breakdown?dimension=page", "realtime", "drops", "export", "imports"]

/** so that no two have a name */
let made = 0

const nouns: ReadonlyArray<Noun> = [
  {
    name: "a site",
    prefix: "st",
    // Public ones are open at another address only.
    make: async (server, { key }) => {
      const json = { name: "Blog", domain: "example.com", public: true }
      return textAt(await ask(server, "POST", `${api}/sites`, { key, json }), "site", "id")
    },
    operations: [
      ["PATCH", "/sites/{id}", { json: { name: "mine" } }],
      ...reads.map((read) => ["GET", `/sites/{id}/${read}`] as const),
      ["POST", "/sites/{id}/secret"],
      ["POST", "/sites/{id}/reset"],
      ["POST", "/sites/{id}/import?import=a&offset=0", { body: "" }],
      ["POST", "/sites/{id}/visits/rebuild", { json: {} }],
      ["DELETE", "/sites/{id}"]
    ],
    isAdministered: false,
    notFound: { error: "Site not found" },
    read: () => "/sites"
  },
  {
    name: "a key",
    prefix: "key",
    make: async (server, { key }) =>
      textAt(await ask(server, "POST", `${api}/keys`, { key, json: { name: "k", kind: "router" } }), "id"),
    operations: [
      ["PATCH", "/keys/{id}", { json: { name: "mine" } }],
      ["DELETE", "/keys/{id}"]
    ],
    isAdministered: true,
    notFound: nested("Key not found", "key_not_found"),
    read: () => "/keys"
  },
  {
    name: "a collection",
    prefix: "col",
    make: async (server, { key }) => {
      const json = { name: "Collection", models: ["sandbox/echo"] }
      return textAt(await ask(server, "POST", `${api}/collections`, { key, json }), "id")
    },
    operations: [
      ["GET", "/collections/{id}"],
      ["PATCH", "/collections/{id}", { json: { name: "mine" } }],
      ["DELETE", "/collections/{id}"]
    ],
    isAdministered: true,
    notFound: nested("Collection not found", "collection_not_found"),
    read: () => "/collections"
  },
  {
    name: "a project",
    prefix: "pjt",
    make: async (server, { key }) =>
      textAt(await ask(server, "POST", `${api}/projects`, { key, json: { name: "Project" } }), "id"),
    operations: [
      ["GET", "/projects/{id}"],
      ["PATCH", "/projects/{id}", { json: { name: "mine" } }],
      ["GET", "/projects/{id}/subscribers"],
      ["POST", "/projects/{id}/join-link"],
      ["DELETE", "/projects/{id}"]
    ],
    isAdministered: false,
    notFound: { error: "Project not found" },
    read: () => "/projects"
  },
  {
    name: "a project key",
    prefix: "pky",
    make: async (server, { key }) => {
      const json = { name: "k", projects: "all" }
      return textAt(await ask(server, "POST", `${api}/project-keys`, { key, json }), "id")
    },
    operations: [
      ["PATCH", "/project-keys/{id}", { json: { name: "mine" } }],
      ["DELETE", "/project-keys/{id}"]
    ],
    isAdministered: false,
    notFound: { error: "Project key not found" },
    read: () => "/project-keys"
  },
  {
    name: "a device",
    prefix: "dev",
    make: async (server, { key }) => {
      const json = { name: "Laptop", platform: "desktop" }
      return textAt(await ask(server, "POST", "/api/devices", { key, json }), "id")
    },
    operations: [
      ["PATCH", "/api/devices/{id}", { json: { name: "mine" } }],
      ["DELETE", "/api/devices/{id}"]
    ],
    isAdministered: false,
    notFound: { error: "Device not found" },
    read: () => "/api/devices"
  },
  {
    name: "a file",
    prefix: "fil",
    make: async (server, { key }) =>
      textAt(await ask(server, "POST", `${api}/files`, { key, form: form(new Uint8Array([1]), "a") }), "id"),
    // A file is readable with its id alone.
    operations: [["DELETE", "/files/{id}"]],
    isAdministered: false,
    notFound: { deleted: false },
    read: (id) => `/files/${id}`
  },
  {
    name: "a mail domain",
    prefix: "dom",
    make: async (server, { key }) => {
      const json = { name: `noun-${++made}.example` }
      return textAt(await ask(server, "POST", `${api}/emails/domains`, { key, json }), "id")
    },
    // To verify it would ask name servers: test/mail/domains has them.
    operations: [
      ["GET", "/emails/domains/{id}"],
      ["POST", "/emails/domains/{id}/rotate"],
      ["DELETE", "/emails/domains/{id}"]
    ],
    isAdministered: false,
    notFound: { error: "Domain not found" },
    read: () => "/emails/domains"
  },
  {
    name: "a suppression",
    prefix: "sup",
    make: async (server, { key }) => {
      const json = { address: "ada@example.org" }
      return textAt(await ask(server, "POST", `${api}/emails/suppressions`, { key, json }), "id")
    },
    operations: [["DELETE", "/emails/suppressions/{id}"]],
    isAdministered: false,
    notFound: { error: "Suppression not found" },
    read: () => "/emails/suppressions"
  },
  {
    name: "a mail",
    prefix: "eml",
    make: async (server, { key }) => {
      const sendAt = new Date(Date.now() + 3_600_000).toISOString()
      const json = { from: "a@example.com", to: "b@example.org", subject: "S", text: "T", send_at: sendAt }
      return textAt(await ask(server, "POST", `${api}/send`, { key, json }), "message_id")
    },
    operations: [
      ["GET", "/emails/{id}"],
      ["GET", "/emails/{id}/attempts"],
      ["GET", "/emails/{id}/raw"],
      ["POST", "/emails/{id}/cancel"]
    ],
    isAdministered: false,
    isKept: true,
    notFound: { error: "Mail not found" },
    read: () => "/emails"
  },
  {
    name: "an agent's session",
    prefix: "ses",
    make: async (server, { key }) => {
      const socket = await AgentSocket.open(server.url, key, { model: "sandbox/coder" })
      socket.say({ type: "bye" })
      await socket.closed()
      return socket.sessionId
    },
    operations: [
      ["GET", "/agent/sessions/{id}"],
      ["DELETE", "/agent/sessions/{id}"]
    ],
    isAdministered: false,
    isKept: true,
    notFound: { error: "Session not found" },
    read: () => "/agent/sessions"
  }
]

let server: Reachable
let owner: Caller
let stranger: Caller
beforeAll(async () => {
  server = (await sharedServer()).server
  owner = await makeCaller(server, 5)
  stranger = await makeCaller(server, 5)
})

/** Those of shared files are in a place of their own. */
const fullPath = (path: string): string => (path.startsWith("/api/") ? path : api + path)

const send = (key: string, [method, path, asked = {}]: Noun["operations"][number], id: string) =>
  ask(server, method, fullPath(path.replace("{id}", id)), { ...asked, key })

const isMissing = async ({ notFound, operations }: Noun, key: string, id: string): Promise<void> => {
  for (const operation of operations) {
    const { body, status } = await send(key, operation, id)
    assert.deepStrictEqual([status, body], [404, notFound], operation.slice(0, 2).join(" "))
  }
}

const shows = async ({ read }: Noun, key: string, id: string): Promise<boolean> => {
  const { body, status } = await ask(server, "GET", fullPath(read(id)), { key })
  // A file is its bytes.
  return body === undefined ? status === 200 : JSON.stringify(body).includes(id)
}

describe.each(nouns)("$name", (noun) => {
  it("is its owner's, by whichever key, and for others not there, as if there were none", async () => {
    const id = await noun.make(server, owner)
    for (const unknown of [`${noun.prefix}_${"0".repeat(22)}`, `${noun.prefix}_x`])
      await isMissing(noun, stranger.key, unknown)
    await isMissing(noun, stranger.key, id)
    const admin = server.adminKey()
    if (!noun.isAdministered) await isMissing(noun, admin, id)
    assert.isTrue(await shows(noun, owner.key, id))
    // The list of a file is open to holders of its id.
    if (noun.prefix !== "fil") assert.isFalse(await shows(noun, stranger.key, id))
    const another = await owner.makeKey({ kind: "account" })
    const end = noun.operations.at(-1) ?? assert.fail("it cannot be deleted")
    for (const operation of noun.operations) {
      const { body, status } = await send(another, operation, id)
      assert.include([200, 201], status, `${operation.slice(0, 2).join(" ")} ${JSON.stringify(body)}`)
    }
    if (noun.isKept === true) return assert.isTrue(await shows(noun, owner.key, id))
    assert.strictEqual(end[0], "DELETE")
    await isMissing(noun, owner.key, id)
  })
})

describe.each(nouns.filter(({ isAdministered }) => isAdministered))("$name", (noun) => {
  it("is there for administrators, of whomever it is", async () => {
    const id = await noun.make(server, owner)
    for (const operation of noun.operations)
      assert.strictEqual((await send(server.adminKey(), operation, id)).status, 200, operation.join(" "))
  })
})

interface List {
  readonly path: string
  /** the list's owners: each user, and others for administrators; or administrators alone, of all users or one */
  readonly of: "each user" | "administrators"
  /** makes one more for a user */
  readonly add: (user: Caller) => Promise<Answer>
  /** the largest page; undefined where the whole list is one */
  readonly limitMax?: number
}

const asAdmin = (path: string, json: object): Promise<Answer> => ask(server, "POST", api + path, { json })

const makePlan = async (): Promise<string> => {
  const allowances = { hour: 1, day: 1, week: 1 }
  const json = { name: "P", price_usd: 1, scope: "all", covers_direct_api: false, models: "*", allowances }
  return textAt(await asAdmin("/plans", json), "id")
}

const lists: ReadonlyArray<List> = [
  {
    path: "/keys",
    of: "each user",
    add: ({ userId: user_id }) => asAdmin("/keys", { name: "k", kind: "router", user_id }),
    limitMax: 100
  },
  {
    path: "/collections",
    of: "each user",
    add: ({ userId: user_id }) => asAdmin("/collections", { name: "C", models: ["sandbox/echo"], user_id })
  },
  {
    path: "/credits/topups",
    of: "each user",
    add: ({ userId: user_id }) => asAdmin("/credits/topups", { amount_usd: 1, user_id }),
    limitMax: 1000
  },
  {
    path: "/subscriptions",
    of: "administrators",
    add: async ({ userId: user_id }) => {
      const json = { plan_id: await makePlan(), current_period_end: "2100-01-01T00:00:00Z", user_id }
      const made = await asAdmin("/subscriptions", json)
      // One at a time: the next one needs room.
      await ask(server, "DELETE", `${api}/subscriptions/${textAt(made, "id")}`)
      return made
    },
    limitMax: 1000
  },
  {
    path: "/users",
    of: "administrators",
    add: () => asAdmin("/admin/users", { email: `page-${++made}@example.org`, name: "P" }),
    limitMax: 100
  }
]

interface Page {
  readonly ids: ReadonlyArray<string>
  readonly total: number
  readonly limit: number
  readonly offset: number
}

const pageOf = ({ body, status }: Answer): Page => {
  assert.strictEqual(status, 200, JSON.stringify(body))
  const { data, meta, users } = body as {
    readonly data?: ReadonlyArray<{ readonly id: string }>
    readonly users?: ReadonlyArray<{ readonly id: string }>
    readonly meta?: { readonly total: number; readonly limit: number; readonly offset: number }
  }
  const ids = (data ?? users ?? []).map(({ id }) => id)
  return { ids, total: meta?.total ?? ids.length, limit: meta?.limit ?? 0, offset: meta?.offset ?? 0 }
}

const read = (path: string, query: string, key?: string): Promise<Answer> =>
  ask(server, "GET", `${api}${path}?${query}`, key === undefined ? {} : { key })

/** The field that an error names. */
const fieldOf = ({ body }: Answer): string | undefined => {
  const { error } = body as { readonly error: string | { readonly param: string } }
  return typeof error === "string" ? error.split(":")[0] : error.param
}

describe.each(lists.filter(({ of }) => of === "each user"))("the list at $path", ({ add, path }) => {
  it("is one's own, and a named user's for administrators alone", async () => {
    const user = await makeCaller(server, 0)
    const id = textAt(await add(user), "id")
    const unknown = `usr_${"0".repeat(22)}`
    assert.include(pageOf(await read(path, "", user.key)).ids, id)
    assert.include(pageOf(await read(path, `user_id=${user.userId}`, user.key)).ids, id)
    assert.include(pageOf(await read(path, `user_id=${user.userId}`)).ids, id)
    assert.notInclude(pageOf(await read(path, "", stranger.key)).ids, id)
    assert.strictEqual((await read(path, `user_id=${user.userId}`, stranger.key)).status, 403)
    const nobody = await read(path, `user_id=${unknown}`)
    assert.deepStrictEqual([nobody.status, fieldOf(nobody)], [404, "user_id"])
  })
})

describe.each([
  ["/keys", { name: "k", kind: "account" }],
  ["/collections", { name: "C", models: ["sandbox/echo"] }]
])("what is made at %s", (path, fields) => {
  it("is made for another user by administrators alone, and for nobody else than there is", async () => {
    const json = { ...fields, user_id: owner.userId }
    assert.strictEqual((await ask(server, "POST", api + path, { key: stranger.key, json })).status, 403)
    assert.strictEqual((await ask(server, "POST", api + path, { json })).status, 201)
    const nobody = await asAdmin(path, { ...fields, user_id: `usr_${"0".repeat(22)}` })
    assert.deepStrictEqual([nobody.status, fieldOf(nobody)], [404, "user_id"])
  })
})

describe.each(lists.filter(({ limitMax }) => limitMax !== undefined))(
  "pages of $path",
  ({ add, limitMax = 0, of, path }) => {
    it("hold as many as asked for from where it was asked, with the total of all", async () => {
      const user = await makeCaller(server, 0)
      for (let count = 0; count < 3; count++) assert.strictEqual((await add(user)).status, 201)
      const key = of === "each user" ? user.key : server.adminKey()
      const page = async (query: string) => pageOf(await read(path, `${query}&user_id=${user.userId}`, key))
      const all = await page(`limit=${limitMax}`)
      assert.isAtLeast(all.ids.length, 3)
      assert.deepInclude(all, { limit: limitMax, offset: 0 })
      const first = await page("limit=2")
      const second = await page("limit=2&offset=1")
      assert.deepStrictEqual([first.ids, second.ids], [all.ids.slice(0, 2), all.ids.slice(1, 3)])
      assert.deepInclude(second, { limit: 2, offset: 1, total: all.total })
      const beyond = await page("offset=2147483647")
      assert.deepStrictEqual([beyond.ids, beyond.total], [[], all.total])
    })

    it("name the limit or offset that cannot be", async () => {
      for (const [query, field] of [
        ["limit=0", "limit"],
        [`limit=${limitMax + 1}`, "limit"],
        ["limit=-1", "limit"],
        ["limit=1.5", "limit"],
        ["limit=ten", "limit"],
        ["limit=", "limit"],
        ["offset=-1", "offset"],
        ["offset=2147483648", "offset"],
        ["offset=x", "offset"]
      ] as const) {
        const refused = await read(path, query)
        assert.deepStrictEqual([refused.status, fieldOf(refused)], [400, field], query)
      }
    })
  }
)
