import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask, createSite } from "#test/harness/ApiClient.ts"
import { analyticsOf, counts, isStandby } from "./CountingServers.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { embeddedClickHouse } from "./StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

describe("a server with stores of its own", () => {
  let own: ServerProcess
  let guest: ServerProcess | undefined

  beforeAll(async () => {
    // A suite on given stores gives them to every server: here the embedded ones are meant.
    own = await startServer({ env: { DATABASE_URL: "", CLICKHOUSE_URL: "" } })
  })
  afterAll(async () => {
    await guest?.dispose()
    await own?.dispose()
  })

  it("counts from the start, also after a kill -9, without a word about it", async () => {
    assert.strictEqual(await analyticsOf(own), "up")
    await own.stop("SIGKILL")
    await own.start()
    assert.strictEqual(await analyticsOf(own), "up")
    assert.notMatch(own.output(), /standby|stands by|in the place of/)
  })

  it("goes on counting when another is given its stores, which stands by", async () => {
    const { url } = JSON.parse(readFileSync(join(own.dataDir, "postgres.json"), "utf8")) as { url: string }
    guest = await startServer({ env: { DATABASE_URL: url, CLICKHOUSE_URL: embeddedClickHouse(own).url } })
    const other = guest
    assert.strictEqual(await analyticsOf(other), "standby")
    assert.match(other.output(), /"analytics":"standby/)
    const site = await createSite(own)
    const json = [{ id: "order 1", url: "/bought", name: "buy", visitor: "one" }]
    const collected = await ask(own, "POST", "/api/v1/collect", { key: site.secret, json })
    assert.strictEqual(collected.status, 202)
    assert.isTrue(isStandby(await ask(other, "POST", "/api/v1/collect", { key: site.secret, json })))
    await counts(own)
    const path = `/api/v1/sites/${site.id}/stats?period=24h`
    assert.strictEqual((await ask(own, "GET", path)).status, 200)
    await until("the other knows the site, and not its figures", async () => {
      const found = await ask(other, "GET", path, { key: own.adminKey() })
      return isStandby(found) ? undefined : `${found.status} ${JSON.stringify(found.body)}`
    })
  })
})
