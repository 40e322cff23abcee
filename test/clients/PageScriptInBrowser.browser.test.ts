import { assert, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { Browser, BrowserContext, Page as Tab } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest"
import { createSite, type TestSite, type Counting } from "#test/harness/ApiClient.ts"
import { root } from "#test/harness/ServerProcess.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { isBlocked } from "./Blocklist.ts"
import { chromiumPresent, sharedBrowser, openUndriven, type Tabs, tabsOf } from "#test/harness/Browser.ts"
import { engagedMillis, hasEvent, hasViews, hitsOnce, pageviews, type StoredHit } from "./StoredHits.ts"
import { startWebsite, type Website } from "./Website.ts"

/** The last event of a page, behind those it must not send. */
const done = hasEvent("done")

describeWith(chromiumPresent, "a page with /a.js, in Chromium,", () => {
  let server: Counting
  let browser: Browser
  let tabs: Tabs
  let website: Website
  let context: BrowserContext
  let site: TestSite
  let tab: Tab
  /** errors and rejections that reached the page */
  let errors: Array<string>

  beforeAll(async () => {
    server = (await sharedServer()).server
    website = await startWebsite()
    browser = await sharedBrowser()
    tabs = await tabsOf(browser)
  })
  afterAll(async () => {
    await website?.close()
  })
  beforeEach(async () => {
    site = await createSite(server, "example.test")
    context = await browser.newContext({ timezoneId: "Europe/Vienna" })
    tab = await context.newPage()
    errors = []
    tab.on("pageerror", (error) => errors.push(error.message))
  })
  afterEach(async () => {
    await context.close()
    assert.deepStrictEqual(errors, [])
  })

  const url = (path: string, host = "www.example.test"): string => `http://${host}:${website.port}${path}`
  const snippet = (attributes = ""): string =>
    `<script defer ${attributes} data-site="${site.id}" src="${server.url}/a.js"></script>`
  const hits = (isEnough: (hits: ReadonlyArray<StoredHit>) => boolean): Promise<ReadonlyArray<StoredHit>> =>
    hitsOnce(server, site, isEnough)
  const stub =
    "<script>window.beacon=window.beacon||function(){(beacon.q=beacon.q||[]).push(arguments)}</script>"

  it("counts a page view with its address, referrer, campaign and, by the time zone, country", async () => {
    website.put({
      "/found": { body: `<a href="${url("/landing?utm_campaign=spring&token=secret#part")}">go</a>` },
      "/landing": { head: snippet() }
    })
    await tab.goto(url("/found", "search.other.test"))
    await tab.click("a")
    const [view, ...others] = await hits((stored) => stored.length > 0)
    assert.deepStrictEqual(others, [])
    const { pv, ...said } = view ?? assert.fail("nothing is stored")
    assert.match(pv, /^[0-9a-z]{6,}$/)
    assert.deepStrictEqual(said, {
      kind: "pageview",
      name: "",
      hostname: "example.test",
      path: "/landing",
      referrer: "http://search.other.test/",
      source: "search.other.test",
      campaign: "spring",
      country: "AT",
      browser: "Chrome",
      engagedMillis: 0,
      props: {}
    })
  })

  it("counts navigation by the History API where the path changes, and only there", async () => {
    website.put({ "/app": { head: snippet() } })
    await tab.goto(url("/app"))
    await tab.evaluate(`
      history.replaceState({ same: true }, "", "/app?tab=2")
      history.pushState({}, "", "/app?tab=3#top")
      location.hash = "#bottom"
      history.pushState({}, "", "/app/first")
      history.pushState({}, "", "/app/first#note")
      history.replaceState({}, "", "/app/second")
    `)
    await tab.goBack()
    await tab.waitForURL("**/app/first")
    await tab.evaluate(`beacon("done")`)
    const stored = await hits((all) => done(all) && pageviews(all).length >= 4)
    assert.deepStrictEqual(pageviews(stored).toSorted(), ["/app", "/app/first", "/app/first", "/app/second"])
    assert.strictEqual(new Set(stored.flatMap(({ kind, pv }) => (kind === "pageview" ? [pv] : []))).size, 4)
    assert.isTrue(stored.every(({ source }) => source === ""))
  })

  it("counts beacon(name, { props }), calls from before the script was there too, and answers nothing", async () => {
    website.put({
      "/early": { head: `${stub}<script>beacon("early",{props:{at:"head"}})</script>${snippet()}` }
    })
    await tab.goto(url("/early?utm_campaign=autumn"))
    const answer = await tab.evaluate(`beacon("signup", { props: { plan: "pro", seats: 3, trial: true } })`)
    assert.isUndefined(answer)
    await tab.evaluate(`beacon("done")`)
    const stored = await hits((all) => done(all) && hasEvent("signup")(all) && hasEvent("early")(all))
    const propsOf = (name: string) => stored.filter((hit) => hit.name === name).map(({ props }) => props)
    assert.deepStrictEqual(propsOf("early"), [{ at: "head" }])
    assert.deepStrictEqual(propsOf("signup"), [{ plan: "pro", seats: "3", trial: "true" }])
    assert.deepStrictEqual(propsOf("done"), [{}])
    assert.deepStrictEqual(pageviews(stored), ["/early"])
    // The first to come in gives the visit its key.
    assert.isTrue(stored.every(({ campaign, path }) => campaign === "autumn" && path === "/early"))
  })

  it("measures how long a page is visible, and not how long it is there", async () => {
    website.put({ "/read": { head: snippet() }, "/other": {} })
    const opened = performance.now()
    const read = await tabs.open(url("/read"))
    await hits(hasViews("/read"))
    const front = await tabs.open(url("/other"))
    const first = engagedMillis(await hits((all) => engagedMillis(all, "/read") > 0), "/read")
    const hidden = performance.now()
    assert.isAtMost(first, hidden - opened)
    // Time that must not be counted has to pass.
    await sleep(400)
    const shown = performance.now()
    await tabs.activate(read)
    await tabs.close(read)
    const all = await hits((stored) => engagedMillis(stored, "/read") > first)
    assert.isAtMost(engagedMillis(all, "/read") - first, performance.now() - shown)
    assert.isBelow(engagedMillis(all, "/read"), performance.now() - opened - 400 + 1)
    assert.strictEqual(pageviews(all).length, 1)
    await tabs.close(front)
  })

  it("credits visible time to the page that was left, within the page and out of it", async () => {
    website.put({ "/one": { head: snippet() }, "/away": {} })
    const opened = performance.now()
    await tab.goto(url("/one"))
    await tab.waitForFunction("performance.now() > 50")
    await tab.evaluate(`history.pushState({}, "", "/two")`)
    await tab.waitForFunction("performance.now() > 100")
    await tab.goto(url("/away"))
    const stored = await hits((all) => engagedMillis(all, "/one") > 0 && engagedMillis(all, "/two") > 0)
    const elapsed = performance.now() - opened
    assert.isAtMost(engagedMillis(stored, "/one") + engagedMillis(stored, "/two"), elapsed)
    assert.strictEqual(stored.filter(({ kind }) => kind === "engage").length, 2)
  })

  /** Says that the script, which is deferred, has run: the page asks the website for `/ran/…`. */
  const saysRan = `<script>addEventListener("DOMContentLoaded",()=>fetch("/ran"+location.pathname))</script>`
  const ran = (...paths: ReadonlyArray<string>): Promise<void> =>
    until("the script has run", async () => paths.find((path) => !website.asked().includes(`/ran${path}`)))

  it("counts a page in a background tab when it is looked at, and what it did before then too", async () => {
    const calls = `beacon("before");addEventListener("DOMContentLoaded",()=>beacon("loaded"))`
    const head = `${stub}<script>${calls}</script>${saysRan}${snippet()}`
    website.put({ "/front": {}, "/behind": { head }, "/never": { head } })
    const front = await tabs.open(url("/front"))
    const behind = await tabs.open(url("/behind"), { background: true })
    const never = await tabs.open(url("/never"), { background: true })
    await ran("/behind", "/never")
    assert.deepStrictEqual(await hits(() => true), [])
    await tabs.activate(behind)
    const stored = await hits((all) => all.length >= 3)
    assert.deepStrictEqual(stored.map(({ kind, name, path }) => `${kind} ${name} ${path}`).toSorted(), [
      "event before /behind",
      "event loaded /behind",
      "pageview  /behind"
    ])
    for (const id of [never, behind, front]) await tabs.close(id)
  })

  it("counts a prerendered page when it is shown, and not where it never is", async () => {
    const rules = { prerender: [{ source: "list", urls: ["/next", "/unseen"], eagerness: "immediate" }] }
    const goesOn = `<script>
      const look = async () => {
        const answer = await (await fetch("/go-on")).text()
        if (answer.includes("now")) location.href = "/next"
        else setTimeout(look, 20)
      }
      look()
    </script>`
    const wasPrerendered = `<script>if (document.prerendering) window.beacon = { q: [["prerendered"]] }</script>`
    website.put({
      "/start": { head: `<script type="speculationrules">${JSON.stringify(rules)}</script>${goesOn}` },
      "/next": { head: `${wasPrerendered}${saysRan}${snippet()}` },
      "/unseen": { head: `${wasPrerendered}${saysRan}${snippet()}` }
    })
    const close = await openUndriven(url("/start"))
    try {
      await ran("/next", "/unseen")
      assert.deepStrictEqual(await hits(() => true), [])
      website.put({ "/go-on": { body: "now" } })
      const stored = await hits((all) => hasViews("/next")(all) && hasEvent("prerendered")(all))
      assert.deepStrictEqual(pageviews(stored), ["/next"])
    } finally {
      await close()
    }
  })

  it("counts a page again that comes back from the back/forward cache", async () => {
    website.put({
      "/list": {
        head: `${snippet()}<script>addEventListener("pageshow",(e)=>{window.restored=e.persisted})</script>`
      },
      "/item": { head: snippet() }
    })
    await tab.goto(url("/list"))
    await tab.goto(url("/item"))
    await tab.goBack({ waitUntil: "commit" })
    await tab.waitForFunction("window.restored")
    const stored = await hits((all) => pageviews(all).length >= 3)
    assert.deepStrictEqual(pageviews(stored).toSorted(), ["/item", "/list", "/list"])
    const ids = stored.flatMap(({ kind, path, pv }) => (kind === "pageview" && path === "/list" ? [pv] : []))
    assert.strictEqual(new Set(ids).size, 2)
  })

  it("counts once where the tag is there twice", async () => {
    website.put({ "/twice": { head: `${snippet()}${snippet()}`, body: snippet() } })
    await tab.goto(url("/twice"))
    await tab.addScriptTag({ url: `${server.url}/a.js?again` })
    await tab.evaluate(`history.pushState({}, "", "/twice/more"); beacon("done")`)
    const stored = await hits((all) => done(all) && hasViews("/twice", "/twice/more")(all))
    assert.deepStrictEqual(pageviews(stored).toSorted(), ["/twice", "/twice/more"])
    assert.strictEqual(stored.filter(({ name }) => name === "done").length, 1)
  })

  it("is allowed by the documented line of a content security policy, and by its hash", async () => {
    const script = await (await fetch(`${server.url}/a.js`)).text()
    const integrity = `sha384-${createHash("sha384").update(script).digest("base64")}`
    website.put({
      "/strict": {
        head: snippet(`crossorigin="anonymous" integrity="${integrity}"`),
        headers: {
          "content-security-policy": `default-src 'none'; img-src data:; script-src ${server.url}; connect-src ${server.url}`
        }
      }
    })
    await tab.goto(url("/strict"))
    assert.deepStrictEqual(pageviews(await hits(hasViews("/strict"))), ["/strict"])
  })

  it("works as if it were not there where a policy blocks the script or what it sends", async () => {
    website.put({
      "/no-script": {
        head: `${stub}${snippet()}`,
        headers: { "content-security-policy": "script-src 'unsafe-inline'" }
      },
      "/no-connect": { head: snippet(), headers: { "content-security-policy": "connect-src 'none'" } },
      "/open": { head: snippet() }
    })
    for (const path of ["/no-script", "/no-connect"]) {
      await tab.goto(url(path))
      const type = await tab.evaluate(`
        beacon("blocked", { props: { by: "policy" } })
        history.pushState({}, "", location.pathname + "/more")
        typeof beacon
      `)
      assert.strictEqual(type, "function")
      assert.strictEqual(new URL(tab.url()).pathname, `${path}/more`)
    }
    await tab.goto(url("/open"))
    assert.deepStrictEqual(pageviews(await hits(hasViews("/open"))), ["/open"])
  })

  it("is counted behind EasyPrivacy, set up as documented, and where beacons are blocked", async () => {
    const readme = readFileSync(join(root, "README.md"), "utf8")
    const [, host = ""] = /<script defer data-site="st_…" src="https:\/\/([^/"]+)\/a\.js">/.exec(readme) ?? []
    assert.match(host, /\.example\.com$/)
    const page = url("/behind")
    // The list that blocks the names that it is known to block, and a beacon to any.
    const { port } = new URL(server.url)
    const fetched = (name: string) => ({ url: `http://${name}:${port}/api/event`, type: "fetch", page })
    assert.isTrue(isBlocked(fetched("stats.example.com")))
    assert.isTrue(isBlocked(fetched("analytics.example.com")))
    assert.isTrue(isBlocked({ ...fetched(host), type: "ping" }))
    const blocked: Array<string> = []
    await context.route("**/*", async (route) => {
      const asked = { url: route.request().url(), type: route.request().resourceType(), page }
      if (!isBlocked(asked)) return route.continue()
      blocked.push(`${asked.type} ${asked.url}`)
      return route.abort("blockedbyclient")
    })
    website.put({ "/behind": { head: snippet().replace("127.0.0.1", host) } })
    await tab.goto(page)
    await tab.evaluate(`beacon("done"); history.pushState({}, "", "/behind/more")`)
    const stored = await hits((all) => done(all) && hasViews("/behind", "/behind/more")(all))
    assert.deepStrictEqual(pageviews(stored).toSorted(), ["/behind", "/behind/more"])
    assert.deepStrictEqual(blocked, [])
  })

  it("sends to the endpoint of data-api, such as a path of the site itself", async () => {
    website.put({
      "/own": { head: snippet(`data-api="/hello"`) },
      "/hello": { passesTo: `${server.url}/api/event` }
    })
    await context.addCookies([{ name: "session", value: "secret", url: url("/") }])
    await tab.goto(url("/own"))
    assert.deepStrictEqual(pageviews(await hits(hasViews("/own"))), ["/own"])
    assert.include(website.asked(), "/hello")
    assert.isFalse(website.cookies().some((cookie) => cookie.path === "/hello"))
  })

  it("sends by sendBeacon where fetch is missing, throws or does not outlive its page", async () => {
    const noFetch = "window.fetch=()=>{throw new Error('no fetch')}"
    const breaking = {
      "/missing": "delete window.fetch",
      "/throwing": noFetch,
      "/forgetting": `delete Request.prototype.keepalive;${noFetch}`
    }
    for (const [path, script] of Object.entries(breaking)) {
      website.put({ [path]: { head: `<script>${script}</script>${snippet()}` } })
      await tab.goto(url(path))
    }
    assert.deepStrictEqual(pageviews(await hits(hasViews(...Object.keys(breaking)))).toSorted(), [
      "/forgetting",
      "/missing",
      "/throwing"
    ])
  })

  it("sends by fetch where neither keepalive nor sendBeacon is there", async () => {
    const old = "delete Request.prototype.keepalive;delete Navigator.prototype.sendBeacon"
    website.put({ "/old": { head: `<script>${old}</script>${snippet()}` } })
    await tab.goto(url("/old"))
    assert.deepStrictEqual(pageviews(await hits(hasViews("/old"))), ["/old"])
  })

  it("throws nothing into the page, whatever the page has done to its globals or hands over", async () => {
    const noFetch = "Navigator.prototype.sendBeacon=window.fetch=()=>{throw new Error('nothing goes out')}"
    const rejecting =
      "delete Navigator.prototype.sendBeacon;window.fetch=()=>Promise.reject(new Error('offline'))"
    const frozen = "Object.freeze(history);Object.freeze(navigator);Object.freeze(Intl);window.beacon=null"
    const clobbered = "Intl.DateTimeFormat=()=>{throw new Error('no zone')}"
    for (const [index, script] of [noFetch, rejecting, frozen, clobbered].entries()) {
      website.put({ [`/broken/${index}`]: { head: `<script>${script}</script>${snippet()}` } })
      await tab.goto(url(`/broken/${index}`))
      await tab.evaluate(`
        const circular = {}
        circular.self = circular
        beacon("circular", { props: circular })
        beacon("null", null)
        beacon("getter", { get props() { throw new Error("no props") } })
        beacon()
        history.pushState({}, "", location.pathname + "/more")
        dispatchEvent(new Event("popstate"))
        dispatchEvent(new Event("pagehide"))
      `)
      assert.strictEqual(new URL(tab.url()).pathname, `/broken/${index}/more`)
    }
    assert.includeMembers([...pageviews(await hits(hasViews("/broken/2", "/broken/3")))], ["/broken/2"])
  })

  it("leaves no cookie and nothing in any storage", async () => {
    website.put({ "/clean": { head: snippet() }, "/clean/2": { head: snippet() } })
    await tab.goto(url("/clean"))
    await tab.evaluate(`beacon("done")`)
    await hits(done)
    await tab.goto(url("/clean/2"))
    await hits(hasViews("/clean/2"))
    const kept = await tab.evaluate(`(async () => ({
      cookie: document.cookie,
      local: localStorage.length,
      session: sessionStorage.length,
      databases: (await indexedDB.databases()).length,
      name: window.name
    }))()`)
    assert.deepStrictEqual(kept, { cookie: "", local: 0, session: 0, databases: 0, name: "" })
    assert.deepStrictEqual(await context.cookies(), [])
    assert.deepStrictEqual((await context.storageState({ indexedDB: true })).origins, [])
    assert.deepStrictEqual(
      website.cookies().filter(({ path }) => path.startsWith("/clean")),
      []
    )
  })
})
