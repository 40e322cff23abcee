import { assert, it } from "@effect/vitest"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest"
import { createSite, type TestSite, type Counting } from "#test/harness/ApiClient.ts"
import { freePort } from "#test/harness/ServerProcess.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { drained, storedPaths } from "#test/integration/StoredEvents.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type ClientHost, download, type HostEvent, languages, startHost } from "./ClientHost.ts"
import { HttpReceiver, passesOn } from "#test/harness/HttpReceiver.ts"
import { storedHits } from "./StoredHits.ts"

const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
const visits = (count: number, prefix = ""): ReadonlyArray<HostEvent> =>
  Array.from({ length: count }, (_, index) => ({ url: `${prefix}/${index}`, visitor: "v" }))

/** More than any of these tests takes; it ends with an error where a client never comes to its end. */
const patienceSeconds = 60

let server: Counting
let middleman: HttpReceiver
let directory: string
let site: TestSite

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "clients-"))
  server = (await sharedServer()).server
  middleman = await HttpReceiver.start(passesOn(server.url))
})
afterAll(async () => {
  await middleman.close()
  await rm(directory, { recursive: true, force: true })
})
beforeEach(async () => {
  site = await createSite(server)
})

/** The paths that are stored, once each. */
const storedOnce = async (): Promise<ReadonlyArray<string>> => {
  await drained(server, site)
  const stored = await storedPaths(server, site)
  assert.deepStrictEqual(
    [...stored].filter(([, count]) => count !== 1),
    []
  )
  return [...stored.keys()].toSorted()
}
const pathsOf = (events: ReadonlyArray<HostEvent>): ReadonlyArray<string> =>
  events.map(({ url }) => url).toSorted()

for (const language of languages) {
  describeWith(language.present, `the client for ${language.name}`, () => {
    let client: string
    let host: ClientHost

    beforeAll(async () => {
      client = await download(server, language, directory)
    })
    beforeEach(() => {
      host = startHost(language, client)
    })
    afterEach(async () => {
      await host.kill()
    })

    const make = (options: object = {}): Promise<unknown> =>
      host.tell("make", { secret: site.secret, url: middleman.origin, ...options })
    const flush = (): Promise<unknown> => host.tell("flush", { seconds: patienceSeconds })
    const settled = async (): Promise<void> => {
      assert.isTrue(await flush())
      assert.deepStrictEqual(await host.told(), { dropped: 0, errors: [] })
    }
    /** Ends the application; it has nothing to complain of. */
    const ended = async (): Promise<void> => {
      assert.deepStrictEqual(await host.end(), { code: 0, complaints: "" })
    }

    it("sends page views and events with their fields to the server that it came from", async () => {
      await make({ url: undefined })
      const happened = Date.now() - 3_600_000
      await host.record([
        {
          url: "/page?utm_campaign=spring",
          ip: "192.0.2.1",
          userAgent,
          referrer: "https://other.example/x?y"
        },
        { url: "https://example.com/buy", name: "order", visitor: "v", props: { plan: "pro", seats: 3 } },
        { url: "/café/☕", visitor: "v", props: {}, country: "AT", timestamp: happened, id: "mine" },
        { url: "/again", visitor: "v", id: "mine" },
        { url: "/bot", userAgent: "Googlebot/2.1 (+http://www.google.com/bot.html)" }
      ])
      await settled()
      const hits = await storedHits(server, site)
      const said = hits.map(({ name, path, props }) => ({ name, path, props }))
      assert.sameDeepMembers(said as Array<unknown>, [
        { name: "", path: "/page", props: {} },
        { name: "order", path: "/buy", props: { plan: "pro", seats: "3" } },
        { name: "", path: "/café/☕", props: {} }
      ])
      const [page] = hits.filter(({ path }) => path === "/page")
      assert.deepInclude(page, {
        campaign: "spring",
        browser: "Firefox",
        referrer: "https://other.example/x",
        hostname: "example.com"
      })
      await ended()
    })

    it("sends at most 100 events at once, and those of a moment together", async () => {
      await make()
      const before = middleman.received.length
      const events = visits(250)
      await host.record(events)
      await settled()
      const sizes = middleman.received
        .slice(before)
        .map(({ body }) => (JSON.parse(body.toString()) as ReadonlyArray<unknown>).length)
      assert.deepStrictEqual(sizes, [100, 100, 50])
      assert.deepStrictEqual(await storedOnce(), pathsOf(events))
    })

    it("sends again what was stored and its answer lost, and it counts once", async () => {
      await make()
      middleman.next(passesOn(server.url, true), passesOn(server.url), passesOn(server.url, true))
      const events = visits(150)
      await host.record(events)
      await settled()
      assert.deepStrictEqual(await storedOnce(), pathsOf(events))
    })

    it("tries again after 429 and 5xx, no sooner than it is told to", async () => {
      await make()
      const before = middleman.received.length
      middleman.next({ status: 503, headers: { "retry-after": "1" } }, { status: 429 })
      await host.record(visits(3))
      await settled()
      assert.deepStrictEqual(await storedOnce(), ["/0", "/1", "/2"])
      const [first, second, third, ...others] = middleman.received.slice(before)
      assert.deepStrictEqual(others, [])
      assert.isAtLeast((second?.atMillis ?? 0) - (first?.atMillis ?? 0), 1000)
      // The same ids, and the time at which the events happened.
      assert.strictEqual(String(second?.body), String(first?.body))
      assert.strictEqual(String(third?.body), String(first?.body))
    })

    it("tries nothing again that is refused, and says what is lost and why", async () => {
      await make({ secret: "ssk_wrong" })
      const before = middleman.received.length
      await host.record([{ url: "/lost", visitor: "v" }])
      assert.isTrue(await flush())
      assert.deepStrictEqual(await host.told(), {
        dropped: 0,
        errors: [{ message: "401: Invalid or missing site secret", urls: ["/lost"] }]
      })
      middleman.next({ redirectTo: `${middleman.origin}/elsewhere` })
      await host.record([{ url: "/moved", visitor: "v" }])
      assert.isTrue(await flush())
      assert.match((await host.told()).errors[0]?.message ?? "", /^302: /)
      assert.strictEqual(middleman.received.length, before + 2)
      assert.deepStrictEqual(await storedOnce(), [])
      await ended()
    })

    it("says which event of a batch is wrong; the others count", async () => {
      await make()
      await host.record([
        { url: "/good", visitor: "v" },
        { url: "nowhere", visitor: "v" },
        { url: "/better", visitor: "v" }
      ])
      assert.isTrue(await flush())
      const { dropped, errors } = await host.told()
      assert.strictEqual(dropped, 0)
      assert.deepStrictEqual(
        errors.map(({ urls }) => urls),
        [["nowhere"]]
      )
      assert.match(errors[0]?.message ?? "", /^url: /)
      assert.deepStrictEqual(await storedOnce(), ["/better", "/good"])
    })

    it("lets the server's clock count where its own is ahead", async () => {
      await make()
      await host.record([
        { url: "/ahead", visitor: "v", timestamp: Date.now() + 3_600_000 },
        { url: "/now", visitor: "v" }
      ])
      await settled()
      assert.deepStrictEqual(await storedOnce(), ["/ahead", "/now"])
    })

    it("throws nothing into the application, whatever it is given", async () => {
      await make({ listens: "badly" })
      await host.tell("spoil")
      await host.record([{ url: "/fine", visitor: "v" }])
      assert.isTrue(await flush())
      const { errors } = await host.told()
      assert.isTrue(errors.some(({ message }) => message.startsWith("not recorded: ")))
      assert.deepStrictEqual(await storedOnce(), ["/fine"])
      await ended()
    })

    it("keeps the latest events of a server that is away, counts the others, and says so once", async () => {
      const port = await freePort()
      await make({ url: `http://127.0.0.1:${port}`, queueMax: 10, delaySeconds: 3600, closeSeconds: 0.2 })
      await host.record(visits(25))
      const { dropped, errors } = await host.told()
      assert.strictEqual(dropped, 15)
      assert.deepStrictEqual(
        errors.map(({ urls }) => urls),
        [["/0"]]
      )
      assert.match(errors[0]?.message ?? "", /^the queue is full/)
      await host.tell("close")
      const closed = await host.told()
      assert.strictEqual(closed.dropped, 25)
      assert.strictEqual(closed.errors.length, 1)
      assert.match(closed.errors[0]?.message ?? "", /^not delivered in time \(.+\)$/)
      assert.deepStrictEqual(closed.errors[0]?.urls, pathsOf(visits(25).slice(15)))
      await host.record([{ url: "/late", visitor: "v" }])
      assert.match((await host.told()).errors[0]?.message ?? "", /^not recorded: .*after close/)
      await ended()
    })

    it("sends what waits when the application comes to its end", async () => {
      await make({ delaySeconds: 3600 })
      // Fewer than a batch, which would not have waited.
      const events = visits(20)
      await host.record(events)
      await ended()
      assert.deepStrictEqual(await storedOnce(), pathsOf(events))
    })

    it("lets the application end where the server refuses connections, or takes them and never answers", async () => {
      await make({ url: `http://127.0.0.1:${await freePort()}`, closeSeconds: 0.2 })
      await host.record(visits(1))
      await ended()

      host = startHost(language, client)
      middleman.next(...Array.from({ length: 20 }, () => "hang" as const))
      await make({ closeSeconds: 0.2 })
      await host.record(visits(1))
      await host.tell("close")
      await ended()
      middleman.forget()
      assert.deepStrictEqual(await storedOnce(), [])
    })
  })
}
