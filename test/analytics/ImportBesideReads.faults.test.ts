import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const
const dayMillis = 86_400_000
const days = 800
const views = 10_000

const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

/** A page view for each number, strewn over 800 days: neighbours are months apart. */
const line = (index: number): string =>
  JSON.stringify({
    url: `/${index % 50}`,
    ip: `198.51.100.${index % 200}`,
    userAgent: agent,
    timestamp: Date.now() - 60_000 - ((index * 379) % days) * dayMillis
  })

const makeSite = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("POST", "/api/v1/sites", { json: { name: "Log", domain: "example.org" } }), ({ json }) => {
    const { secret, site } = json as { secret: string; site: { id: string } }
    return { id: site.id, secret }
  })
)

const imported = (site: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("POST", `/api/v1/sites/${site}/import?import=history&offset=0&last=true`, {
        headers: { "content-type": "application/x-ndjson" },
        body: Array.from({ length: views }, (_, index) => line(index)).join("\n")
      }),
      ({ json, status }) =>
        assert.deepStrictEqual([status, (json as { stored: number }).stored], [200, views])
    )
  )

const statsOf = (site: string, question: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", `/api/v1/sites/${site}/stats?${question}`), ({ json, status }) => ({
      status,
      pageviews: (json as { summary?: { pageviews: number } }).summary?.pageviews
    }))
  )

const collected = (secret: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("POST", "/api/v1/collect", {
        key: secret,
        json: { url: "/live", ip: "203.0.113.9", userAgent: agent }
      }),
      ({ status }) => assert.strictEqual(status, 202)
    )
  )

const everything = (): string => {
  const [from, to] = [Date.now() - (days + 1) * dayMillis, Date.now()]
  const date = (millis: number): string => new Date(millis).toISOString().slice(0, 10)
  return `period=custom&from=${date(from)}&to=${date(to)}`
}

// On a machine that is busy with other work a reader would be shown what is there before what was sent is.
layer(TestServer.own({ limits: { readWaitMillis: 60_000 } }), live)("an import of years of history", (it) => {
  it.effect("refuses no reader of another site, and shows them what they have just sent", () =>
    Effect.gen(function* () {
      const [history, quiet, busy] = [yield* makeSite, yield* makeSite, yield* makeSite]
      const isShown = Effect.map(
        statsOf(history.id, everything()),
        ({ pageviews, status }) => status === 200 && pageviews === views
      )
      const importing = Effect.andThen(
        imported(history.id),
        Effect.repeat(isShown, { until: (shown) => shown })
      )
      const waiting = yield* Effect.forkChild(importing, { startImmediately: true })
      let sent = 0
      while (waiting.pollUnsafe() === undefined || sent < 10) {
        assert.deepStrictEqual(yield* statsOf(quiet.id, "period=7d"), { status: 200, pageviews: 0 })
        yield* collected(busy.secret)
        sent++
        assert.deepStrictEqual(yield* statsOf(busy.id, "period=7d"), { status: 200, pageviews: sent })
        yield* Effect.sleep(50)
      }
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* statsOf(history.id, everything()), { status: 200, pageviews: views })
    })
  )
})
