import { createHash, randomBytes } from "node:crypto"
import { request as httpRequest } from "node:http"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { AgentSocket } from "#test/agents/rest/AgentSocket.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { ask, createSite, textAt } from "#test/harness/ApiClient.ts"
import { type CountingServers, counts, isStandby, startCountingServers } from "./CountingServers.ts"
import { proxies, type Proxy } from "./Proxies.ts"
import { until } from "#test/harness/Eventually.ts"

const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

/** A page view of a browser whose connection comes from this address of the loopback network. */
const viewFrom = (url: string, site: string, from: string, claims?: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = {
      "user-agent": userAgent,
      ...(claims === undefined ? {} : { "x-forwarded-for": claims })
    }
    const request = httpRequest(`${url}/api/event`, { method: "POST", localAddress: from, headers })
    request.on("response", (response) => {
      response.resume()
      response.on("end", () => resolve(response.statusCode))
    })
    request.on("error", reject)
    request.end(JSON.stringify({ s: site, k: "pageview", u: "https://example.com/" }))
  })

/** Started by the first proxy that is there: all take their turn in front of the same two. */
let started: Promise<CountingServers> | undefined
const running: Array<Proxy> = []
afterAll(async () => {
  for (const proxy of running) await proxy.close()
  await (await started)?.close()
})

const statusOf = async (url: string): Promise<string> =>
  textAt(await ask({ url, adminKey: () => "" }, "GET", "/readyz"), "components", "analytics", "status")

for (const { name, present, start } of proxies) {
  describeWith(present, `two servers behind ${name} with README's example`, () => {
    let pair: CountingServers
    let proxy: Proxy
    beforeAll(async () => {
      started ??= startCountingServers()
      pair = await started
      const [first, second] = pair.servers
      await until("one of them counts", async () => {
        const states = await Promise.all([first, second].map((server) => statusOf(server.url)))
        return states.includes("up") ? undefined : JSON.stringify(states)
      })
      proxy = await start([new URL(first.url).host, new URL(second.url).host])
      running.push(proxy)
    })

    const through = () => ({ ...pair.both, url: proxy.url })

    it("takes a file of 20 MB and gives it back", async () => {
      const bytes = randomBytes(20 * 1024 * 1024)
      const form = new FormData()
      form.set("file", new Blob([bytes]), "large.bin")
      const answer = await ask(through(), "POST", "/api/v1/files", { form })
      assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
      // Files are kept beside the server that took them: the two have a DATA_DIR each.
      const id = textAt(answer, "id")
      const stored = await Promise.all(
        pair.servers.map(async ({ url }) => {
          const file = await fetch(`${url}/api/v1/files/${id}`, {
            headers: { authorization: `Bearer ${pair.both.adminKey()}` }
          })
          return createHash("sha256")
            .update(Buffer.from(await file.arrayBuffer()))
            .digest("hex")
        })
      )
      assert.include(stored, createHash("sha256").update(bytes).digest("hex"))
    })

    it("hands the first word of a stream on before the last is there", async () => {
      const response = await fetch(`${proxy.url}/api/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${pair.both.adminKey()}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "sandbox/coder-free",
          stream: true,
          messages: [{ role: "user", content: "wait 300\nsay One word comes after the other." }]
        })
      })
      assert.strictEqual(response.status, 200, await (response.ok ? "" : response.text()))
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      let text = ""
      const more = async (): Promise<boolean> => {
        const piece = await reader?.read()
        text += piece?.value ?? ""
        return piece?.done === false
      }
      while (!/"content":"[^"]/.test(text) && (await more()));
      assert.notInclude(text, "[DONE]")
      while (await more());
      assert.include(text, "[DONE]")
    })

    it("carries the WebSocket of an agent", async () => {
      const socket = await AgentSocket.open(proxy.url, pair.both.adminKey())
      assert.match(socket.sessionId, /^ses_/)
      socket.leave()
    })

    it("tells the servers the visitors' addresses, and not those that a visitor claims", async () => {
      const site = await createSite(through())
      for (const address of ["127.0.0.1", "127.0.0.2", "127.0.0.3"]) {
        for (const claims of [undefined, "198.51.100.1", "198.51.100.2"]) {
          await until("the event is taken", async () => {
            const status = await viewFrom(proxy.url, site.id, address, claims)
            // The other process knows a new site a moment later.
            return status === 202 ? undefined : String(status)
          })
        }
      }
      const { body } = await ask(through(), "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
      const { pageviews, visitors } = (body as { summary: Record<string, number> }).summary
      assert.deepStrictEqual({ pageviews, visitors }, { pageviews: 9, visitors: 3 })
    })

    it("gives each event and each figure to the process that counts", async () => {
      const site = await createSite(through())
      const path = `/api/v1/sites/${site.id}/stats?period=24h`
      await until("one of them stands by", async () => {
        const answers = []
        for (const { url } of pair.servers) answers.push(await ask({ ...pair.both, url }, "GET", path))
        return answers.filter(isStandby).length === 1 ? undefined : JSON.stringify(answers)
      })
      await until("both know the site", async () => {
        const status = await viewFrom(proxy.url, site.id, "127.0.0.1")
        return status === 202 ? undefined : String(status)
      })
      const statuses = []
      for (let sent = 0; sent < 20; sent++) statuses.push(await viewFrom(proxy.url, site.id, "127.0.0.1"))
      const collected = { url: "/signup", name: "signup", visitor: "a" }
      for (let sent = 0; sent < 6; sent++) {
        const secret = { url: proxy.url, adminKey: () => site.secret }
        const answer = await ask(secret, "POST", "/api/v1/collect", { json: [collected] })
        statuses.push(answer.status)
      }
      for (let read = 0; read < 6; read++) statuses.push((await ask(through(), "GET", path)).status)
      assert.deepStrictEqual([...new Set(statuses)].toSorted(), [200, 202])
      const { body } = await ask(through(), "GET", path)
      assert.deepInclude((body as { summary: object }).summary, { pageviews: 21 })
    })

    it("gives addresses to download from under the proxy's own", async () => {
      for (const script of ["/scripts/beacon.mjs", "/scripts/beacon.py", "/scripts/beacon.php"]) {
        const text = await (await fetch(`${proxy.url}${script}`)).text()
        assert.include(text, proxy.url, script)
      }
      assert.include(await (await fetch(`${proxy.url}/agent/install.sh`)).text(), `'${proxy.url}'`)
    })
  })
}

const some = requirement("nginx or Caddy", () =>
  proxies.some(({ present }) => present.available) ? undefined : "neither is in PATH"
)

// The last of this file, since one of the two is gone then.
describeWith(some, "one server that is left behind a proxy with README's example", () => {
  it("serves everything, and counts", async () => {
    const pair = (await started) ?? assert.fail("no proxy was started")
    const states = await Promise.all(pair.servers.map(({ url }) => statusOf(url)))
    const holder = pair.servers[states.indexOf("up")] ?? assert.fail(JSON.stringify(states))
    const other = pair.servers.find((server) => server !== holder) ?? assert.fail()
    const site = await createSite({ ...pair.both, url: other.url })
    await holder.stop("SIGKILL")
    await counts(other)
    for (const { url } of running) {
      for (let sent = 0; sent < 4; sent++) {
        await until("the event is taken", async () => {
          const status = await viewFrom(url, site.id, "127.0.0.1")
          return status === 202 ? undefined : String(status)
        })
        assert.strictEqual((await ask({ ...pair.both, url }, "GET", "/api/v1/sites")).status, 200)
      }
    }
    const { body } = await ask(
      { ...pair.both, url: other.url },
      "GET",
      `/api/v1/sites/${site.id}/stats?period=24h`
    )
    assert.deepInclude((body as { summary: object }).summary, { pageviews: 4 * running.length })
  })
})
