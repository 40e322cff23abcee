import { assert, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest"
import { createSite, type TestSite, type Counting } from "#test/harness/ApiClient.ts"
import { freePort, serverEnvironment } from "#test/harness/ServerProcess.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { drained, storedPaths } from "#test/integration/StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import {
  type ClientHost,
  download,
  hostsDirectory,
  type Language,
  languages,
  startHost
} from "./ClientHost.ts"
import { hitsOnce, storedHits } from "./StoredHits.ts"

const headers = {
  "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  referer: "https://other.example/article?private=1"
}

let server: Counting
let directory: string
let site: TestSite

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "clients-"))
  server = (await sharedServer()).server
})
afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
})
beforeEach(async () => {
  site = await createSite(server)
})

/** Visits the application twice, the second time with a name longer than the server takes, and sees what is stored. */
const visit = async (port: number): Promise<void> => {
  const url = `http://127.0.0.1:${port}/shop/caf%C3%A9?utm_campaign=spring&n=1`
  assert.strictEqual(await (await fetch(url, { headers })).text(), "served")
  const long = { "user-agent": `Firefox/140.0 ${"x".repeat(5_000)}` }
  assert.strictEqual(await (await fetch(`${url}&long`, { headers: long })).text(), "served")
  const hits = await hitsOnce(server, site, (all) => all.length >= 2)
  const page = { kind: "pageview", hostname: "127.0.0.1", path: "/shop/café", campaign: "spring" }
  assert.deepStrictEqual(
    hits.map(({ browser, campaign, hostname, kind, path, referrer }) => ({
      kind,
      hostname,
      path,
      campaign,
      referrer,
      browser
    })),
    [
      { ...page, referrer: "https://other.example/article", browser: "Firefox" },
      { ...page, referrer: "", browser: "Firefox" }
    ]
  )
}

const languageNamed = (name: string): Language =>
  languages.find((language) => language.name === name) ?? assert.fail(name)

for (const name of ["Node", "Python"]) {
  const language = languageNamed(name)
  describeWith(language.present, `a web application of ${name}`, () => {
    let host: ClientHost
    beforeEach(async () => {
      host = startHost(language, await download(server, language, directory))
      await host.tell("make", { secret: site.secret, delaySeconds: 0 })
    })
    afterEach(() => host.kill())

    it("counts its requests with address, page, browser and referrer", async () => {
      const port = Number(await host.tell("serve"))
      await visit(port)
      assert.deepStrictEqual(await host.told(), { dropped: 0, errors: [] })
    })
  })
}

describeWith(languageNamed("Node").present, "fromRequest of Node", () => {
  let host: ClientHost
  beforeAll(async () => {
    host = startHost(languageNamed("Node"), await download(server, languageNamed("Node"), directory))
  })
  afterAll(() => host.kill())

  it("believes Express about scheme, path and address, and Node where it is alone", async () => {
    const socket = { remoteAddress: "192.0.2.1" }
    for (const [request, expected] of [
      [
        {
          headers: { host: "a.example" },
          socket,
          protocol: "https",
          originalUrl: "/app/x",
          url: "/x",
          ip: "192.0.2.9"
        },
        { url: "https://a.example/app/x", ip: "192.0.2.9" }
      ],
      [
        {
          headers: { host: "a.example" },
          socket: { remoteAddress: "fe80::1%eth0", encrypted: true },
          url: "/x"
        },
        { url: "https://a.example/x", ip: "fe80::1" }
      ],
      [{ headers: {}, socket: {}, url: "/x" }, { url: "/x" }],
      [{}, {}],
      [null, {}]
    ] as const) {
      assert.deepStrictEqual(await host.tell("fromRequest", { request }), expected)
    }
  })
})

describeWith(languageNamed("Python").present, "the client for Python", () => {
  let host: ClientHost
  beforeEach(async () => {
    host = startHost(languageNamed("Python"), await download(server, languageNamed("Python"), directory))
  })
  afterEach(() => host.kill())

  it("reads an ASGI scope", async () => {
    const scope = {
      type: "http",
      scheme: "https",
      path: "/café",
      query_string: "n=1",
      client: ["192.0.2.1", 4711],
      headers: [
        ["host", "a.example"],
        ["user-agent", "Firefox"],
        ["referer", "https://b.example/"]
      ]
    }
    const expected = {
      url: "https://a.example/caf%C3%A9?n=1",
      ip: "192.0.2.1",
      user_agent: "Firefox",
      referrer: "https://b.example/"
    }
    assert.deepStrictEqual(await host.tell("asgi", { scope }), expected)
    const bare = { type: "http", path: "/", query_string: "", client: null, headers: [] }
    assert.deepStrictEqual(await host.tell("asgi", { scope: bare }), { url: "/" })
  })

  it("has a queue and a thread of its own in a forked process, and leaves the parent's to the parent", async () => {
    await host.tell("make", { secret: site.secret, delaySeconds: 3600 })
    await host.record([{ url: "/parent", visitor: "v" }])
    assert.strictEqual(await host.tell("fork"), 0)
    await drained(server, site)
    assert.deepStrictEqual([...(await storedPaths(server, site))], [["/child", 1]])
    await host.end()
    await drained(server, site)
    const stored = await storedPaths(server, site)
    assert.deepStrictEqual([...stored].toSorted(), [
      ["/child", 1],
      ["/parent", 1]
    ])
  })
})

describeWith(languageNamed("PHP").present, "a page of PHP", () => {
  it("counts its requests with address, page, browser and referrer when they are over", async () => {
    const php = languageNamed("PHP")
    const port = await freePort()
    const env = { CLIENT: await download(server, php, directory), SECRET: site.secret }
    const child = spawn(
      php.command,
      [...php.args, "-S", `127.0.0.1:${port}`, join(hostsDirectory, "host.php")],
      { env: serverEnvironment(env), stdio: "ignore" }
    )
    const gone = new Promise((resolve) => child.once("exit", resolve))
    try {
      await until("PHP serves", async () => {
        try {
          await fetch(`http://127.0.0.1:${port}/bot`, { headers: { "user-agent": "curl/8" } })
          return undefined
        } catch (error) {
          return String(error)
        }
      })
      assert.deepStrictEqual(await storedHits(server, site), [])
      await visit(port)
      // One byte of Latin-1, as old pages send it: no UTF-8, and so nothing that JSON could hold as it is.
      await fetch(`http://127.0.0.1:${port}/`, {
        headers: { ...headers, referer: "https://other.example/\u00e9" }
      })
      const hits = await hitsOnce(server, site, (all) => all.length >= 3)
      assert.strictEqual(hits[2]?.referrer, "https://other.example/\ufffd")
    } finally {
      child.kill()
      await gone
    }
  })
})
