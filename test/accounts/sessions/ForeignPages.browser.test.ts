import { createServer, request as send, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { operations } from "#test/contract/Operations.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"

/** A request as it arrived from the browser, and its answer. */
interface Seen {
  readonly method: string
  readonly path: string
  readonly hasCookie: boolean
  readonly status: number
  readonly allowedOrigin: string | undefined
}

const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

/** Hands requests on as they are, and keeps what came and what was answered. */
const recorderOf = (port: number, seen: Array<Seen>): Server =>
  createServer((request, response) => {
    const { headers, method = "", url: path = "" } = request
    const onward = send({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      const { headers: given, statusCode: status = 0 } = answer
      const hasCookie = headers.cookie?.includes("signalbox=") === true
      seen.push({ method, path, hasCookie, status, allowedOrigin: given["access-control-allow-origin"] })
      response.writeHead(status, given)
      answer.pipe(response)
    })
    request.pipe(onward)
  })

interface Attempt {
  readonly method: string
  readonly url: string
  readonly body: string
}

/** The scripts of a foreign page: every way to ask another origin by `fetch`, and by forms of all three encodings. */
const foreignPage = `<!doctype html><title>Elsewhere</title><body><script>
const ways = (method) => [
  { headers: { "content-type": "application/json" } },
  ...(method === "POST" ? [{}, { mode: "no-cors" }] : [])
]
const fetchAll = (attempts) => Promise.allSettled(attempts.flatMap(({ body, method, url }) =>
  ways(method).map((way) => fetch(url, { method, body, credentials: "include", ...way }))))
const submit = async ({ body, url }, enctype, target) => {
  const frame = document.createElement("iframe")
  frame.name = target
  document.body.append(frame)
  const form = document.createElement("form")
  Object.assign(form, { action: url, method: "post", enctype, target })
  const field = document.createElement("input")
  // As text it is JSON: {"ticket":"…","x":"="}
  field.name = body.slice(0, -1) + (body === "{}" ? "" : ",") + '"x":"'
  field.value = '"}'
  form.append(field)
  document.body.append(form)
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }))
  form.submit()
  await loaded
  frame.remove()
  form.remove()
}
const encodings = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]
const submitAll = (attempts) => {
  const posts = attempts.filter(({ method }) => method === "POST")
  const forms = posts.flatMap((attempt) => encodings.map((encoding) => [attempt, encoding])).entries()
  const submitSome = async () => {
    for (const [index, [attempt, encoding]] of forms) await submit(attempt, encoding, "target-" + index)
  }
  return Promise.all(Array.from({ length: 8 }, submitSome))
}
</script></body>`

/** They take no credential, and so no cookie. */
const openToAll = new Set(["/api/event", "/api/cli/auth/init", "/direct/x"])
const sessionPaths = ["/api/session", "/api/session/token"]

describeWith(chromiumPresent, "while a person is signed in, in Chromium,", () => {
  let server: ServerProcess
  let browser: Browser
  const seen: Array<Seen> = []
  let box: Server
  let boxPort = 0
  let elsewhere: Server
  let elsewherePort = 0
  let ticket = ""

  beforeAll(async () => {
    server = await startServer()
    browser = await sharedBrowser()
    box = recorderOf(Number(new URL(server.url).port), seen)
    boxPort = await listen(box)
    elsewhere = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/html" })
      response.end(foreignPage)
    })
    elsewherePort = await listen(elsewhere)
    const { body } = await ask(server, "GET", "/api/v1/health")
    const { userId } = body as { readonly userId: string }
    const link = await ask(server, "POST", `/api/v1/admin/users/${userId}/login-link`)
    ticket = textAt(link, "url").split("#")[1] ?? ""
  })
  afterAll(async () => {
    box?.close()
    elsewhere?.close()
    await server?.dispose()
  })

  const attemptsAt = (origin: string): ReadonlyArray<Attempt> =>
    operations
      .filter(({ method }) => method !== "GET" && method !== "HEAD")
      .map(({ method, path }) => ({
        method,
        url: `${origin}${path.replace(/\{\w+\}/g, "x")}`,
        body: path === sessionPaths[0] ? JSON.stringify({ ticket }) : "{}"
      }))

  /** From the own page: its script has the cookie sent along. */
  const ownFetch = (page: Page, method: string, path: string, key?: string) =>
    page.evaluate(
      async ([method, path, key]) => {
        const headers = key === "" ? {} : { authorization: `Bearer ${key}` }
        return (await fetch(path, { method, headers })).status
      },
      [method, path, key ?? ""] as const
    )

  for (const [name, own, foreign, isSameSite] of [
    // The addresses of this machine are trustworthy, and so Sec-Fetch-Site is sent.
    ["another port of the machine", "127.0.0.1", "127.0.0.1", true],
    ["another site, on this machine", "127.0.0.1", "evil.test", false],
    // By http a browser sends Origin alone.
    ["a neighbouring host", "box.test", "pages.box.test", true],
    ["another site", "box.test", "evil.test", false]
  ] as const)
    it(`no page of ${name} changes anything by the cookie of ${own}`, async () => {
      const origin = `http://${own}:${boxPort}`
      // Its content security policy is for its own script, not for the one of this test.
      const context = await browser.newContext({ bypassCSP: true })
      const page = await context.newPage()
      await page.goto(`${origin}/docs`)
      assert.strictEqual(await ownFetch(page, "POST", "/api/session", server.adminKey()), 201)

      const other = await context.newPage()
      await other.goto(`http://${foreign}:${elsewherePort}/`)
      const attempts = attemptsAt(origin)
      seen.length = 0
      await other.evaluate(`fetchAll(${JSON.stringify(attempts)})`)
      await other.evaluate(`submitAll(${JSON.stringify(attempts)})`)
      const arrived = seen.splice(0)

      const changes = arrived.filter(({ method, path }) => method !== "OPTIONS" && !openToAll.has(path))
      for (const { method, path, status } of changes)
        assert.include([401, 403, 415], status, `${method} ${path}`)
      for (const { allowedOrigin, path } of arrived)
        if (!openToAll.has(path)) assert.isUndefined(allowedOrigin, path)
      // Other methods than POST ask for leave first, which nothing gives.
      assert.deepStrictEqual(
        changes.filter(({ method }) => method !== "POST"),
        []
      )
      const posted = new Set(changes.map(({ path }) => path))
      for (const { method, url } of attempts)
        if (method === "POST" && !openToAll.has(new URL(url).pathname))
          assert.isTrue(posted.has(new URL(url).pathname), `${url} was asked`)
      const byCookie = changes.filter(({ hasCookie, path }) => hasCookie && sessionPaths.includes(path))
      assert.strictEqual(byCookie.length > 0, isSameSite, "a page of the same site has the cookie sent")
      for (const { path, status } of byCookie)
        assert.include(path === sessionPaths[0] ? [403, 415] : [403], status, path)

      assert.strictEqual(await ownFetch(page, "GET", "/api/session"), 200)
      assert.strictEqual(await ownFetch(page, "POST", "/api/session/token"), 200)
      assert.strictEqual(await ownFetch(page, "POST", "/api/v1/sites"), 401, "the cookie opens no other room")
      assert.strictEqual(await ownFetch(page, "DELETE", "/api/session"), 200)
      assert.strictEqual(await ownFetch(page, "GET", "/api/session"), 401)
      await context.close()
    })

  it("no page saw the cookie, and the ticket that pages sent is not used up", async () => {
    const origin = `http://127.0.0.1:${boxPort}`
    const context = await browser.newContext({ bypassCSP: true })
    const page = await context.newPage()
    await page.goto(`${origin}/docs`)
    const status = await page.evaluate(async (ticket) => {
      const headers = { "content-type": "application/json" }
      return (await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ ticket }) }))
        .status
    }, ticket)
    assert.strictEqual(status, 201)
    assert.strictEqual(await page.evaluate("document.cookie"), "")
    const [cookie] = await context.cookies()
    assert.deepInclude(cookie, { name: "signalbox", httpOnly: true, sameSite: "Lax", path: "/" })
    await context.close()
  })
})
