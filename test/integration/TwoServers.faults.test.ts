import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { limits } from "#src/Limits.ts"
import { redisServer, startRedis, type RedisServer } from "#test/harness/RedisServer.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { ask, createSite, textAt } from "#test/harness/ApiClient.ts"
import { startBeacons } from "./BeaconLoad.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { discrepancies, drained, none, storedPaths } from "./StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

describeWith(redisServer, "two servers that share Postgres, ClickHouse and Redis", () => {
  const scope = Scope.makeUnsafe()
  let stores: ServerStores
  let redis: RedisServer
  let first: ServerProcess
  let second: ServerProcess
  let admin: string

  beforeAll(async () => {
    stores = await openStores()
    redis = await Effect.runPromise(startRedis.pipe(Scope.provide(scope)))
    const env = { ...stores.env, REDIS_URL: Redacted.value(redis.url), TRUST_PROXY: "1" }
    first = await startServer({ env })
    second = await startServer({ env })
    // The first boot made the administrator; the second server has no key file of its own.
    admin = first.adminKey()
  })
  afterAll(async () => {
    await second?.dispose()
    await first?.dispose()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await stores?.close()
  })

  const newKey = async (ratePerMinute: number): Promise<{ readonly id: string; readonly secret: string }> => {
    const json = { name: "shared", kind: "account", rate_limit_per_minute: ratePerMinute }
    const made = await ask(first, "POST", "/api/v1/keys", { json })
    return { id: textAt(made, "id"), secret: textAt(made, "key") }
  }

  /** Asks both servers with the key, as fast as they answer, and counts what is let through. */
  const hammer = async (key: string, millis: number): Promise<number> => {
    const until = performance.now() + millis
    let admitted = 0
    const loop = async (server: ServerProcess): Promise<void> => {
      while (performance.now() < until) {
        const { status } = await ask(server, "GET", "/api/v1/sites", { key })
        assert.include([200, 429], status)
        if (status === 200) admitted++
      }
    }
    await Promise.all([first, first, second, second].map(loop))
    return admitted
  }

  const rateLimitsOf = async (server: ServerProcess): Promise<string> => {
    const ready = await ask(server, "GET", "/readyz", { key: "" })
    assert.strictEqual(ready.status, 200)
    return textAt(ready, "components", "rate-limits", "status")
  }

  it("hold one key's bucket together: never above burst and rate, and nearly all of it can be used", async () => {
    const ratePerMinute = 600
    const { secret } = await newKey(ratePerMinute)
    const since = performance.now()
    const admitted = await hammer(secret, 4_000)
    const allowed = limits.rateBurst + (ratePerMinute / 60_000) * (performance.now() - since)
    assert.isAtMost(admitted, Math.ceil(allowed))
    assert.isAbove(admitted, allowed * 0.8)
  })

  it("stop a revoked key within a second", async () => {
    const { id, secret } = await newKey(60_000)
    await until("the key works in the second", async () => {
      const { status } = await ask(second, "GET", "/api/v1/sites", { key: secret })
      return status === 200 ? undefined : String(status)
    })
    assert.strictEqual((await ask(first, "DELETE", `/api/v1/keys/${id}`)).status, 200)
    await sleep(1_000)
    assert.strictEqual((await ask(second, "GET", "/api/v1/sites", { key: secret })).status, 401)
  })

  it("take events for a site that the other made: the one that counts", async () => {
    const site = await createSite({ url: second.url, adminKey: () => admin })
    await until("the first knows the site", async () => {
      const { status } = await ask(first, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
      return status === 200 ? undefined : String(status)
    })
    const load = startBeacons({ url: first.url, site: site.id, connections: 4, label: "first" })
    await sleep(500)
    await load.stop()
    assert.deepStrictEqual([...new Set(load.outcomes.values())], [202])
    await drained(first, site)
    const stored = await storedPaths(first, site, stores.clickhouseUrl)
    assert.deepStrictEqual(discrepancies(load.outcomes, stored), none)
  })

  it("limit on their own while Redis is away, say so, and share again when it is back", async () => {
    const { secret } = await newKey(60)
    await Effect.runPromise(redis.stop)
    await hammer(secret, 300)
    for (const server of [first, second]) {
      await until("Redis is missed", async () => {
        const status = await rateLimitsOf(server)
        return status === "degraded" ? undefined : status
      })
    }
    // Both have a bucket of their own now, and each holds.
    const admitted = await hammer(secret, 1_500)
    assert.isAtMost(admitted, 2 * (limits.rateBurst + 5))
    await Effect.runPromise(redis.start)
    for (const server of [first, second]) {
      await until("Redis is found again", async () => {
        await ask(server, "GET", "/api/v1/sites", { key: secret })
        const status = await rateLimitsOf(server)
        return status === "up" ? undefined : status
      })
    }
  })
})
