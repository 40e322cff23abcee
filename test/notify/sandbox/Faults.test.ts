import { assert, describe } from "@effect/vitest"
import { endOf, test } from "./Stage.ts"

describe("faults on order", () => {
  test("answer with a status and Retry-After, so many times, and are over then", async ({
    sandbox,
    sender
  }) => {
    const subscription = await sandbox.subscribe()
    const fault = await sandbox.order({ status: 429, retryAfter: "120", times: 2 })
    assert.deepInclude(fault, { id: "flt_1", left: 2 })
    const told = [
      await sender.push(subscription),
      await sender.push(subscription),
      await sender.push(subscription)
    ]
    assert.deepStrictEqual(
      told.map(({ headers, status }) => [status, headers.get("retry-after")]),
      [
        [429, "120"],
        [429, "120"],
        [201, null]
      ]
    )
    const { accepted, entries } = await sandbox.inbox()
    assert.strictEqual(accepted, 1)
    assert.deepStrictEqual(
      entries.map(({ fault: id, problem }) => [id, problem]),
      [
        ["flt_1", "429 was ordered"],
        ["flt_1", "429 was ordered"],
        [null, null]
      ]
    )
  })

  test("are for one address, or id, where one is named", async ({ sandbox, sender }) => {
    const [one, two, webhook] = [
      await sandbox.subscribe(),
      await sandbox.subscribe(),
      await sandbox.webhook()
    ]
    await sandbox.order({ target: one.endpoint, status: 503, always: true })
    await sandbox.order({ target: webhook.id, status: 404 })
    for (let round = 0; round < 3; round++) {
      assert.strictEqual((await sender.push(one)).status, 503)
      assert.strictEqual((await sender.push(two)).status, 201)
    }
    assert.strictEqual((await sender.webhook(webhook)).status, 404)
    assert.strictEqual((await sender.webhook(webhook)).status, 204)
  })

  test("come in the order in which they were ordered, and go when they are taken back", async ({
    sandbox,
    sender
  }) => {
    const subscription = await sandbox.subscribe()
    await sandbox.order({ status: 500 })
    await sandbox.order({ status: 502, times: 5 })
    const third = await sandbox.order({ status: 504, always: true })
    assert.strictEqual((await sender.push(subscription)).status, 500)
    assert.strictEqual((await sender.push(subscription)).status, 502)
    const { faults } = await sandbox.ask<{ faults: ReadonlyArray<{ id: string; left: number }> }>(
      "GET",
      "/faults"
    )
    assert.deepStrictEqual(
      faults.map(({ id, left }) => [id, left]),
      [
        ["flt_2", 4],
        ["flt_3", null]
      ]
    )
    await sandbox.ask("DELETE", `/faults/${third.id}`)
    assert.match(String(await endOf(sandbox.ask("DELETE", `/faults/${third.id}`))), /^404 /)
    await sandbox.clearFaults()
    assert.strictEqual((await sender.push(subscription)).status, 201)
  })

  test("cut the connection before the request counts, or after it", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    await sandbox.order({ cut: "before" })
    assert.match(String(await endOf(sender.push(subscription))), /fetch failed/)
    await sandbox.order({ cut: "after" })
    assert.match(String(await endOf(sender.push(subscription))), /fetch failed/)
    const { entries } = await sandbox.inbox()
    assert.deepStrictEqual(
      entries.map(({ accepted, state, status }) => [accepted, state, status]),
      [
        [false, null, null],
        [true, "delivered", null]
      ]
    )
  })

  test("delay the answer to what is counted at once", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    await sandbox.order({ delayMillis: 400 })
    const begun = performance.now()
    const pushed = sender.push(subscription)
    await sandbox.accepted(1)
    const counted = performance.now()
    assert.strictEqual((await pushed).status, 201)
    assert.isAtLeast(performance.now() - begun, 390)
    assert.isBelow(counted, performance.now())
  })

  test("answer with a body of their own", async ({ sandbox, sender }) => {
    const body = '{"reason":"BadJwtToken"}'
    await sandbox.order({ status: 403, body })
    const told = await sender.push(await sandbox.subscribe())
    assert.deepStrictEqual([told.status, told.text], [403, body])
  })

  test("may stand in for the answer to an address that is unknown", async ({ sandbox, sender }) => {
    const subscription = await sandbox.subscribe()
    await sandbox.ask("DELETE", `/push/subscriptions/${subscription.id}`)
    await sandbox.order({ status: 302 })
    assert.strictEqual((await sender.push(subscription)).status, 302)
    assert.strictEqual((await sender.push(subscription)).status, 404)
  })

  test("are refused where they make no sense", async ({ sandbox }) => {
    const cases: ReadonlyArray<readonly [object, RegExp]> = [
      [{}, /status: one of status, cut and delayMillis is required/],
      [{ status: 99 }, /status: expected a whole number from 200 to 599/],
      [{ status: 600 }, /status: /],
      [{ status: "503" }, /status: /],
      [{ status: 503, cut: "after" }, /cut: /],
      [{ cut: "now" }, /cut: expected before, after/],
      [{ cut: "before", retryAfter: "1" }, /status: is required with/],
      [{ status: 503, retryAfter: "1\r\nx: y" }, /retryAfter: /],
      [{ status: 503, times: 0 }, /times: /],
      [{ status: 503, times: 1e9 }, /times: /],
      [{ delayMillis: 60_001 }, /delayMillis: /],
      [{ status: 503, always: "yes" }, /always: /],
      [{ status: 503, target: "psh_unknown" }, /target: /],
      [{ status: 503, target: "https://push.example/psh_x" }, /target: /],
      [{ status: 503, body: "x".repeat(4_097) }, /body: /]
    ]
    for (const [order, problem] of cases)
      assert.match(String(await endOf(sandbox.ask("POST", "/faults", order))), problem, JSON.stringify(order))
  })
})
