import { assert, describe } from "@effect/vitest"
import { raw, test } from "./Stage.ts"

describe("the sandbox", () => {
  test("is not asked by pages of others: neither by a name that leads here nor across origins", async ({
    sandbox
  }) => {
    const { port } = new URL(sandbox.origin)
    const ask = (host: string, more = "") =>
      raw(sandbox.origin, `GET /inbox HTTP/1.1\r\nhost: ${host}\r\n${more}connection: close\r\n\r\n`)
    for (const host of [
      "evil.test",
      `evil.test:${port}`,
      "127.0.0.1",
      "127.0.0.1:1",
      `127.0.0.1:${port}.evil.test`
    ])
      assert.match(await ask(host), /^HTTP\/1\.1 403 /, host)
    assert.match(await ask(`localhost:${port}`), /^HTTP\/1\.1 200 /)
    for (const origin of ["https://evil.test", "null", `http://127.0.0.1:${Number(port) + 1}`])
      assert.match(await ask(`127.0.0.1:${port}`, `origin: ${origin}\r\n`), /^HTTP\/1\.1 403 /, origin)
    assert.match(await ask(`127.0.0.1:${port}`, `origin: ${sandbox.origin}\r\n`), /^HTTP\/1\.1 200 /)
    assert.match(
      await ask(`127.0.0.1:${port}`, `origin: ${sandbox.origin}\r\n`),
      /x-content-type-options: nosniff/
    )
  })

  test("takes no message at its own addresses, which strangers could name as theirs", async ({
    sandbox,
    sender
  }) => {
    for (const path of ["/faults", "/webhooks", "/push/subscriptions"]) {
      const url = `${sandbox.origin}${path}`
      const told = await sender.webhook({ id: "", url, secret: null })
      const error = "webhook-id: this address takes no messages"
      assert.deepStrictEqual([told.status, JSON.parse(told.text)], [403, { error }])
      const { keys } = await sandbox.subscribe()
      const request = sender.pushOf({ id: "", endpoint: url, expirationTime: null, keys })
      assert.strictEqual((await sender.post(request)).status, 403)
    }
    assert.deepInclude(await sandbox.ask<object>("GET", "/webhooks"), { total: 0 })
  })

  test("names the methods of an address that has others (405)", async ({ sandbox }) => {
    const { headers, status } = await fetch(`${sandbox.origin}/inbox`, { method: "PUT" })
    assert.deepStrictEqual([status, headers.get("allow")], [405, "GET, DELETE"])
  })
})
