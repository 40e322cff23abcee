import { assert, describe, it } from "@effect/vitest"
import { beforeAll } from "vitest"
import { type Answer, ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { type Operation, operations } from "./Operations.ts"

/**
 * The permissions of keys at every operation of the published document. An operation that is not in the table fails the
 * first test, so that a new one is thought of.
 */
const api = "/api/v1"

/** By the least that a key has to be; the path's ids are made up. */
const access = {
  /** any key: of an account, or of a router */
  any: [
    "GET /health",
    "GET /stats",
    "GET /users",
    "POST /files",
    "GET /files/{id}",
    "DELETE /files/{id}",
    "GET /models",
    "GET /models/{id}",
    "GET /models/{provider}/{name}",
    "GET /collections",
    "GET /collections/{id}",
    "GET /credits",
    "GET /key",
    "GET /subscription",
    "GET /usage",
    "GET /agent",
    "GET /agent/sessions",
    "GET /agent/sessions/{id}",
    "DELETE /agent/sessions/{id}",
    "POST /chat/completions",
    "POST /embeddings"
  ],
  /** a key of an account */
  account: [
    "GET /keys",
    "POST /keys",
    "PATCH /keys/{id}",
    "DELETE /keys/{id}",
    "GET /sites",
    "POST /sites",
    "PATCH /sites/{id}",
    "DELETE /sites/{id}",
    "POST /sites/{id}/secret",
    "POST /sites/{id}/reset",
    "GET /sites/{id}/stats",
    "GET /sites/{id}/breakdown",
    "GET /sites/{id}/realtime",
    "GET /sites/{id}/drops",
    "GET /sites/{id}/export",
    "POST /sites/{id}/import",
    "GET /sites/{id}/imports",
    "POST /sites/{id}/visits/rebuild",
    "POST /collections",
    "PATCH /collections/{id}",
    "DELETE /collections/{id}",
    "GET /credits/topups",
    "GET /plans",
    "GET /plans/{id}",
    "POST /projects",
    "GET /projects/{id}",
    "PATCH /projects/{id}",
    "DELETE /projects/{id}",
    "POST /projects/{id}/join-link",
    "POST /projects/{id}/test",
    "GET /projects/{id}/subscribers",
    "POST /projects/{id}/subscribers",
    "DELETE /projects/{id}/subscribers/{subscriberId}",
    "GET /project-keys",
    "POST /project-keys",
    "PATCH /project-keys/{id}",
    "DELETE /project-keys/{id}",
    "DELETE /messages/{id}",
    "GET /deliveries",
    "POST /deliveries/redrive",
    "GET /emails/domains",
    "POST /emails/domains",
    "GET /emails/domains/{id}",
    "DELETE /emails/domains/{id}",
    "POST /emails/domains/{id}/verify",
    "POST /emails/domains/{id}/rotate",
    "POST /send",
    "POST /send (unversioned)",
    "GET /emails",
    "GET /emails/{id}",
    "GET /emails/{id}/attempts",
    "GET /emails/{id}/raw",
    "GET /emails/stats",
    "POST /emails/{id}/retry",
    "POST /emails/bounces",
    "POST /emails/{id}/cancel",
    "GET /emails/inbox",
    "DELETE /emails/inbox",
    "GET /emails/inbox/{id}",
    "GET /emails/inbox/{id}/html",
    "GET /emails/suppressions",
    "POST /emails/suppressions",
    "DELETE /emails/suppressions/{id}",
    "GET /emails/suppressions.csv",
    "POST /emails/suppressions.csv"
  ],
  /** any key of an administrator */
  administrators: ["POST /users"],
  /** a key of an administrator's account */
  admin: [
    "POST /admin/users",
    "GET /admin/users/{id}",
    "PATCH /admin/users/{id}",
    "DELETE /admin/users/{id}",
    "POST /admin/users/{id}/login-link",
    "GET /admin/quarantine",
    "POST /admin/quarantine/{log}/{offset}/retry",
    "DELETE /admin/quarantine/{log}/{offset}",
    "GET /admin/jobs",
    "POST /admin/jobs/{queue}/redrive",
    "GET /admin/markups",
    "GET /admin/markups/{provider}",
    "PUT /admin/markups/{provider}",
    "POST /credits/topups",
    "POST /plans",
    "GET /subscriptions",
    "POST /subscriptions",
    "DELETE /subscriptions/{id}",
    "GET /admin/ledger/verify"
  ],
  /** a session; `POST /api/session` itself takes a key or a ticket in its own way */
  session: ["GET /api/session", "DELETE /api/session", "POST /api/session/token"],
  /** a project key */
  project: ["POST /messages", "POST /attachments", "POST /mcp", "POST /mcp (unversioned)"],
  /** a project key, or a key of an account */
  projectOrAccount: ["GET /projects", "GET /messages", "GET /messages/{id}", "GET /messages/{id}/deliveries"],
  /** a session alone, in the words for those who have none of any kind */
  cliSession: ["POST /api/cli/auth/read", "POST /api/cli/auth/complete"],
  /** shared files: an account key with the scope full, or a session, by its cookie too */
  filesFull: [
    "GET /api/devices",
    "POST /api/devices",
    "PATCH /api/devices/{id}",
    "DELETE /api/devices/{id}",
    "GET /api/sync/subscriptions",
    "POST /api/sync/subscriptions",
    "GET /api/share-links",
    "POST /api/share-links",
    "GET /api/share-links/{token}",
    "DELETE /api/share-links/{token}",
    "DELETE /api/files/{id}/versions/{versionId}",
    "DELETE /api/trash",
    "DELETE /api/trash/{id}"
  ],
  /** the same with the scope read, for a bucket at least */
  filesRead: [
    "GET /api/sync/manifest",
    "GET /api/directories",
    "GET /api/directories/{id}",
    "GET /api/files",
    "GET /api/files/{id}",
    "GET /api/files/{id}/versions",
    "GET /api/trash",
    "GET /api/storage",
    "GET /api/download/{dirId}"
  ],
  /** the same with the scope write, for a bucket at least */
  filesWrite: [
    "POST /api/directories",
    "PATCH /api/directories/{id}",
    "DELETE /api/directories/{id}",
    "POST /api/directories/{id}/restore",
    "PATCH /api/files/{id}",
    "DELETE /api/files/{id}",
    "POST /api/files/{id}/copy",
    "POST /api/files/{id}/restore",
    "POST /api/cli/upload",
    "POST /api/upload",
    "PUT /api/upload/{bucket}/*",
    "POST /api/send",
    "POST /api/uploads",
    "GET /api/uploads",
    "GET /api/uploads/{id}",
    "PATCH /api/uploads/{id}",
    "DELETE /api/uploads/{id}"
  ],
  /** the secret of a site */
  site: ["POST /collect"],
  /** the token of a subscriber */
  subscriber: [
    "GET /subscriber",
    "PATCH /subscriber",
    "DELETE /subscriber",
    "POST /subscriber/link",
    "PUT /subscriber/projects/{id}",
    "DELETE /subscriber/projects/{id}",
    "POST /subscriber/channels",
    "PATCH /subscriber/channels/{id}",
    "DELETE /subscriber/channels/{id}",
    "POST /subscriber/channels/{id}/test",
    "POST /subscriber/telegram"
  ]
} as const

/** opened by account keys, beside those that any key opens */
const accounts = ["account", "projectOrAccount"] as const

/** opened by the cookie of a session, too */
const files = ["filesFull", "filesRead", "filesWrite"] as const

/** Of mail, for a frame and for links that download: the cookie opens them, too. */
const framedOrDownloaded = [
  "GET /emails/{id}/raw",
  "GET /emails/inbox/{id}/html",
  "GET /emails/suppressions.csv"
]

/** Answers of bytes have no body where they are refused. */
const bodiless = ["GET /api/files/{id}", "GET /api/download/{dirId}"]

const needed = {
  filesFull: "full",
  filesRead: "read, or that of a bucket",
  filesWrite: "write, or that of a bucket"
} as const

/** Paths that are there without a version, too. */
const unversioned = new Set(["/mcp", "/send"])
const nameOf = ({ method, path }: Operation): string =>
  `${method} ${unversioned.has(path) ? `${path} (unversioned)` : path.replace(api, "")}`
const secured = operations.filter((operation) => operation.secured)
const operationsOf = (...classes: ReadonlyArray<keyof typeof access>): ReadonlyArray<Operation> => {
  const names = new Set<string>(classes.flatMap((one) => access[one]))
  return secured.filter((operation) => names.has(nameOf(operation)))
}

const prefixes: Readonly<Record<string, string>> = {
  files: "fil",
  keys: "key",
  users: "usr",
  sites: "st",
  collections: "col",
  plans: "pln",
  subscriptions: "sub",
  sessions: "ses",
  projects: "pjt",
  "project-keys": "pky",
  domains: "dom",
  messages: "msg",
  devices: "dev",
  emails: "eml",
  suppressions: "sup"
}

/** A path of an operation whose ids have the right form and name nothing. */
const pathTo = ({ path }: Operation): string =>
  path
    .replace(/([\w-]+)\/\{id\}/, (_, noun: string) => `${noun}/${prefixes[noun] ?? "x"}_${"0".repeat(22)}`)
    .replace("{log}/{offset}", "events/0")
    .replace(/\{\w+\}/g, "none")

/** The text of an error, and whether it is in the form that the document promises for this operation. */
const errorOf = ({
  body
}: Answer): { readonly message: string; readonly family: "FlatError" | "OpenAiError" } => {
  const { error } = body as { readonly error: string | { readonly message: string } }
  return typeof error === "string"
    ? { message: error, family: "FlatError" }
    : { message: error.message, family: "OpenAiError" }
}

/** The cookie of a new session. */
const cookieBy = async (server: Reachable, key: string): Promise<string> => {
  const { headers } = await ask(server, "POST", "/api/session", { key })
  return headers.getSetCookie()[0]?.split(";", 1)[0] ?? ""
}

const tokenBy = async (server: Reachable, key: string): Promise<string> => {
  const headers = { cookie: await cookieBy(server, key) }
  return textAt(await ask(server, "POST", "/api/session/token", { key: "", headers }), "token")
}

describe("an operation of the published document", () => {
  let server: Reachable
  let person: Caller
  let router: string
  let reader: string
  let siteSecret: string
  let projectKey: string

  beforeAll(async () => {
    server = (await sharedServer()).server
    person = await makeCaller(server, 0)
    const json = { name: "router", kind: "router" }
    router = textAt(await ask(server, "POST", `${api}/keys`, { json }), "key")
    const scoped = { name: "reader", kind: "account", scopes: ["read", "write"] }
    reader = textAt(await ask(server, "POST", `${api}/keys`, { json: scoped }), "key")
    siteSecret = textAt(
      await ask(server, "POST", `${api}/sites`, {
        key: person.key,
        json: { name: "S", domain: "a.example" }
      }),
      "secret"
    )
    projectKey = textAt(
      await ask(server, "POST", `${api}/project-keys`, {
        key: person.key,
        json: { name: "sender", projects: "all" }
      }),
      "key"
    )
  })

  const send = (operation: Operation, key: string): Promise<Answer> =>
    ask(server, operation.method, pathTo(operation), {
      key,
      ...(operation.bodies.length === 0 ? {} : { json: {} })
    })

  /** Refused with these words, in the form of the document. */
  const isRefused = async (operation: Operation, key: string, status: 401 | 403, message: string) => {
    const answer = await send(operation, key)
    const note = `${nameOf(operation)} ${JSON.stringify(answer.body)}`
    assert.strictEqual(answer.status, status, note)
    if (bodiless.includes(nameOf(operation))) return assert.isUndefined(answer.body, note)
    const family = operation.refusals[status]
    assert.deepStrictEqual(errorOf(answer), { message, family }, note)
  }

  it("is in the table of those who may ask", () => {
    const listed = Object.values(access).flatMap((names) => [...names])
    assert.sameMembers(listed, secured.map(nameOf))
    assert.strictEqual(new Set(listed).size, listed.length)
  })

  it("is 401 without a key, with an unknown one, with something else, and with the secret of a site", async () => {
    for (const operation of operationsOf(
      "any",
      ...accounts,
      ...files,
      "administrators",
      "admin",
      "session",
      "cliSession",
      "project"
    ))
      for (const key of ["", `sk_${"0".repeat(40)}`, "x", siteSecret])
        await isRefused(operation, key, 401, "Invalid or missing API key")
  })

  it("is 401 for keys where it takes the token of a subscriber", async () => {
    const unknown = `sbt_${"0".repeat(40)}`
    for (const operation of operationsOf("subscriber"))
      for (const key of ["", unknown, "x", siteSecret, projectKey, person.key, router, server.adminKey()])
        await isRefused(operation, key, 401, "Invalid or missing API key")
  })

  it("is 401 for a project key elsewhere, and says where it takes one", async () => {
    for (const operation of operationsOf(
      "any",
      "account",
      ...files,
      "administrators",
      "admin",
      "session",
      "cliSession"
    ))
      await isRefused(operation, projectKey, 401, "Invalid or missing API key")
    const other = "Invalid or missing API key: use a project key (prj_…)"
    for (const operation of operationsOf("project", "projectOrAccount")) {
      await isRefused(operation, router, 401, other)
      const { status } = await send(operation, projectKey)
      assert.include([200, 400, 404], status, nameOf(operation))
    }
    for (const operation of operationsOf("project"))
      for (const key of [person.key, reader]) await isRefused(operation, key, 401, other)
  })

  it("is 403 for a router key, also an administrator's, where it takes an account", async () => {
    for (const operation of operationsOf("account", ...files, "admin", "session"))
      await isRefused(operation, router, 403, "A router key may not do this; use an account key")
  })

  it("is 403 for a key of other scopes than full, also an administrator's, but for health, stats and users", async () => {
    const open = ["GET /health", "GET /stats", "GET /users"]
    for (const operation of operationsOf("any", ...accounts, "administrators", "admin"))
      if (open.includes(nameOf(operation)))
        assert.strictEqual((await send(operation, reader)).status, 200, nameOf(operation))
      else await isRefused(operation, reader, 403, "This takes the scope full")
  })

  it("is 403 for a key of other scopes than shared files take, one by one", async () => {
    const only = (scope: string) =>
      person.makeKey({ kind: "account", scopes: [scope], rate_limit_per_minute: 1_000_000 })
    for (const [scope, refused, taken] of [
      ["read", ["filesFull", "filesWrite"], ["filesRead"]],
      ["write", ["filesFull", "filesRead"], ["filesWrite"]],
      ["read:photos", ["filesFull", "filesWrite"], ["filesRead"]],
      ["write:photos", ["filesFull", "filesRead"], ["filesWrite"]]
    ] as const) {
      const key = await only(scope)
      for (const one of refused)
        for (const operation of operationsOf(one))
          await isRefused(operation, key, 403, `This takes the scope ${needed[one]}`)
      for (const operation of operationsOf(...taken)) {
        const { body, status } = await send(operation, key)
        const note = `${scope} ${nameOf(operation)} ${JSON.stringify(body)}`
        // A bucket of another name is 403 in words of its own.
        assert.notInclude([401, 500, 502, 503], status, note)
      }
    }
  })

  it("is 403 for a user where it takes an administrator, before its body is looked at", async () => {
    for (const operation of operationsOf("administrators", "admin"))
      await isRefused(operation, person.key, 403, "Only administrators may do this")
  })

  it("is 401 for a key of any kind where a command line is let in", async () => {
    for (const operation of operationsOf("cliSession"))
      for (const key of [person.key, reader, router, projectKey, server.adminKey()])
        await isRefused(operation, key, 401, "Invalid or missing API key")
  })

  it("is 401 for a key where it takes a session, with words of its own", async () => {
    for (const operation of operationsOf("session"))
      for (const key of [person.key, reader, server.adminKey()])
        await isRefused(operation, key, 401, "There is no session; sign in by POST /api/session")
  })

  it("lets a session's token come as far as its key", async () => {
    for (const [key, classes] of [
      [person.key, ["any", ...accounts, ...files, "cliSession"]],
      [server.adminKey(), ["any", ...accounts, ...files, "administrators", "admin"]]
    ] as const) {
      const token = await tokenBy(server, key)
      for (const operation of operationsOf(...classes)) {
        const { body, status } = await send(operation, token)
        assert.notInclude([401, 403, 500, 502, 503], status, `${nameOf(operation)} ${JSON.stringify(body)}`)
      }
    }
  })

  it("takes no notice of a session's cookie, but where it takes a session, is of shared files, or of the mail's page", async () => {
    const headers = { cookie: await cookieBy(server, server.adminKey()) }
    for (const operation of operationsOf("any", ...accounts, "administrators", "admin")) {
      if (framedOrDownloaded.includes(nameOf(operation))) continue
      const answer = await ask(server, operation.method, pathTo(operation), { key: "", headers })
      assert.strictEqual(answer.status, 401, nameOf(operation))
      assert.isEmpty(answer.headers.getSetCookie())
    }
    const ofMail = operationsOf("account").filter((one) => framedOrDownloaded.includes(nameOf(one)))
    assert.strictEqual(ofMail.length, framedOrDownloaded.length)
    for (const operation of [...operationsOf(...files, "cliSession"), ...ofMail]) {
      const { body, status } = await ask(server, operation.method, pathTo(operation), {
        key: "",
        headers,
        ...(operation.bodies.length === 0 ? {} : { json: {} })
      })
      assert.notInclude([401, 403, 500, 502, 503], status, `${nameOf(operation)} ${JSON.stringify(body)}`)
    }
    for (const operation of operationsOf("session")) {
      const cookie = await cookieBy(server, person.key)
      const answer = await ask(server, operation.method, pathTo(operation), { key: "", headers: { cookie } })
      assert.strictEqual(answer.status, 200, nameOf(operation))
    }
  })

  it("lets all others come as far as what they ask for", async () => {
    for (const [key, classes] of [
      // The administrator's.
      [router, ["any", "administrators"]],
      [person.key, ["any", ...accounts, ...files]],
      [server.adminKey(), ["any", ...accounts, ...files, "administrators", "admin"]]
    ] as const)
      for (const operation of operationsOf(...classes)) {
        const { body, status } = await send(operation, key)
        assert.notInclude([401, 403, 500, 502, 503], status, `${nameOf(operation)} ${JSON.stringify(body)}`)
      }
  })
})
