import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "../Sandbox.ts"
import { api, faultOf, live, makeStage, sent } from "../Stage.ts"
import { join, joined, openProject, settingsOf, subscription } from "./SubscriberStage.ts"

/** The path of the link that was posted to a webhook. */
const linkPosted = (sandbox: Effect.Success<typeof sandboxOfServer>, channel: string) =>
  Effect.promise(async () => {
    const entries = await sandbox.accepted(1, { channel })
    const payload = entries.at(-1)?.payload as {
      readonly type: string
      readonly data: { confirmUrl: string }
    }
    assert.strictEqual(payload.type, "channel.confirmation")
    return new URL(payload.data.confirmUrl).pathname
  })

layer(TestServer.shared, live)("a webhook", (it) => {
  it.effect("gets messages once the link that was posted there is confirmed", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, link } = yield* openProject(stage)
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      const { channel, secret, token } = yield* joined(link, { webhook: { url: hook.url, name: "Pager" } })
      assert.match(secret ?? "", /^whsec_[\w+/]+=*$/)
      assert.deepInclude(channel, { kind: "webhook", state: "unconfirmed" })
      const key = yield* stage.projectKey()
      assert.strictEqual((yield* sent(key)).recipients, 0)
      assert.deepStrictEqual(
        faultOf(
          yield* ask("PATCH", `${api}/subscriber/channels/${channel?.id}`, {
            key: token,
            json: { state: "active" }
          })
        ),
        [409, "state: open the link that was posted to the webhook first"]
      )
      const path = yield* linkPosted(sandbox, hook.id)
      assert.match(path, /^\/n\/confirm\/[0-9A-Za-z]{40}$/)
      // Programs that look at links confirm nothing.
      for (const method of ["GET", "HEAD", "GET"])
        assert.strictEqual((yield* ask(method, path, { key: "" })).status, 200)
      assert.strictEqual((yield* sent(key)).recipients, 0)
      const page = yield* ask("GET", path, { key: "" })
      assert.include(page.headers.get("content-security-policy"), "form-action 'self'")
      assert.notInclude(Buffer.from(page.bytes).toString(), hook.id)
      for (const _ of [1, 2]) assert.strictEqual((yield* ask("POST", path, { key: "" })).status, 200)
      assert.strictEqual((yield* sent(key)).recipients, 1)
      const { channels } = yield* settingsOf(token)
      assert.deepInclude(channels[0], { name: "Pager", state: "active", host: new URL(hook.url).host })
      assert.notInclude(JSON.stringify(channels), hook.id)
      // Turned off it stays so, whoever opens the link again.
      const own = `${api}/subscriber/channels/${channel?.id}`
      yield* ask("PATCH", own, { key: token, json: { state: "off" } })
      assert.strictEqual((yield* ask("POST", path, { key: "" })).status, 200)
      assert.strictEqual((yield* settingsOf(token)).channels[0]?.state, "off")
      yield* ask("DELETE", own, { key: token })
      assert.strictEqual((yield* ask("POST", path, { key: "" })).status, 404)
    })
  )

  it.effect("that does not take its link is not added, and its subscriber not made", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id, link } = yield* openProject(stage)
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      const webhook = { url: hook.url }
      const fault = [400, "webhook.url: did not take the link by which it is confirmed"] as const
      for (const order of [{ status: 500 }, { status: 302 }, { status: 410 }, { cut: "before" }] as const) {
        yield* Effect.promise(() => sandbox.order({ ...order, target: hook.url }))
        assert.deepStrictEqual(faultOf(yield* join(link, { webhook })), fault)
      }
      const listed = yield* ask("GET", `${api}/projects/${id}/subscribers`, { key: stage.key })
      assert.deepInclude(listed.json, { subscribers: [] })
      const { token } = yield* joined(link, { webhook })
      yield* Effect.promise(() => sandbox.order({ status: 404, target: hook.url }))
      const other = yield* Effect.promise(() => sandbox.webhook())
      yield* Effect.promise(() => sandbox.order({ status: 404, target: other.url }))
      const add = (url: string) =>
        ask("POST", `${api}/subscriber/channels`, { key: token, json: { webhook: { url } } })
      assert.deepStrictEqual(faultOf(yield* add(other.url)), fault)
      assert.deepStrictEqual(faultOf(yield* add(hook.url)), [
        409,
        "webhook.url: is among the channels already"
      ])
      assert.lengthOf((yield* settingsOf(token)).channels, 1)
      const added = yield* add(other.url)
      assert.strictEqual(added.status, 201)
      assert.strictEqual(added.headers.get("cache-control"), "no-store")
      assert.property(added.json, "secret")
    })
  )

  it.effect("that does not take its link leaves one who has a token as they were", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const one = yield* openProject(stage)
      const { token } = yield* joined(one.link, { name: "Ada", push: subscription() })
      const other = yield* openProject(stage)
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      yield* Effect.promise(() => sandbox.order({ status: 500, target: hook.url }))
      const before = yield* settingsOf(token)
      const asked = { name: "Grace", webhook: { url: hook.url } }
      assert.strictEqual((yield* join(other.link, asked, token)).status, 400)
      assert.deepStrictEqual(yield* settingsOf(token), before)
      assert.strictEqual((yield* join(other.link, asked, token)).status, 201)
      const after = yield* settingsOf(token)
      assert.deepStrictEqual([after.name, after.projects.length, after.channels.length], ["Grace", 2, 2])
    })
  )

  it.effect("may be several subscribers'", () =>
    Effect.gen(function* () {
      const { link } = yield* openProject(yield* makeStage)
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      const one = yield* joined(link, { webhook: { url: hook.url } })
      const other = yield* joined(link, { webhook: { url: hook.url } })
      assert.notStrictEqual(one.secret, other.secret)
      for (const { token } of [one, other]) assert.lengthOf((yield* settingsOf(token)).channels, 1)
    })
  )

  it.effect("and a browser get a test at once, and its sender is told how it went", () =>
    Effect.gen(function* () {
      const { ask, link } = yield* openProject(yield* makeStage)
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      const { channel: hooked, secret, token } = yield* joined(link, { webhook: { url: hook.url } })
      const test = (id = "") => ask("POST", `${api}/subscriber/channels/${id}/test`, { key: token })
      assert.deepStrictEqual(faultOf(yield* test(hooked?.id)), [
        409,
        "Open the link that was posted to the webhook first"
      ])
      yield* ask("POST", yield* linkPosted(sandbox, hook.id), { key: "" })
      yield* Effect.promise(() => sandbox.changeWebhook(hook.id, secret === undefined ? {} : { secret }))
      assert.deepStrictEqual((yield* test(hooked?.id)).json, { delivered: true, error: null })
      const { pushKey } = yield* settingsOf(token)
      const push = yield* Effect.promise(() => sandbox.subscribe({ applicationServerKey: pushKey }))
      const { channel: browser } = yield* joined(link, { push }, token)
      assert.deepStrictEqual((yield* test(browser?.id)).json, { delivered: true, error: null })
      for (const [channel, count] of [
        [hook.id, 2],
        [push.id, 1]
      ] as const) {
        const entries = yield* Effect.promise(() => sandbox.accepted(count, { channel }))
        assert.include(
          JSON.stringify(entries.at(-1)?.payload),
          "Notifications of your projects reach you here."
        )
        assert.strictEqual(entries.at(-1)?.problem, null)
      }
      yield* Effect.promise(() => sandbox.order({ status: 500, target: push.endpoint }))
      const failed = yield* test(browser?.id)
      assert.deepInclude(failed.json, { delivered: false })
      assert.match(String((failed.json as { error: string }).error), /500/)
      yield* Effect.promise(() => sandbox.changeSubscription(push.id, { state: "expired" }))
      assert.deepInclude((yield* test(browser?.id)).json, { delivered: false })
      const { channels } = yield* settingsOf(token)
      assert.strictEqual(channels.find(({ id }) => id === browser?.id)?.state, "gone")
      assert.deepStrictEqual(faultOf(yield* test("chn_x")), [404, "Channel not found"])
    })
  )

  it.effect("of the project's owner gets messages at once", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id } = yield* openProject(stage, { slug: "owned" })
      const sandbox = yield* sandboxOfServer
      const hook = yield* Effect.promise(() => sandbox.webhook())
      const add = (json: object, key = stage.key, ref = "owned") =>
        ask("POST", `${api}/projects/${ref}/subscribers`, { key, json })
      const added = yield* add({ name: "Pager", url: hook.url })
      assert.strictEqual(added.status, 201)
      assert.strictEqual(added.headers.get("cache-control"), "no-store")
      const { secret, ...subscriber } = added.json as { secret: string; name: string; delivery: string }
      assert.deepInclude(subscriber, { name: "Pager", delivery: "inherit" })
      yield* Effect.promise(() => sandbox.changeWebhook(hook.id, { secret }))
      const listed = yield* ask("GET", `${api}/projects/${id}/subscribers`, { key: stage.key })
      assert.deepStrictEqual((listed.json as { subscribers: ReadonlyArray<object> }).subscribers, [
        subscriber
      ])
      yield* sent(yield* stage.projectKey(), { message: "to the owner" })
      const [entry] = yield* Effect.promise(() => sandbox.accepted(1, { channel: hook.id }))
      assert.include(JSON.stringify(entry?.payload), "to the owner")
      for (const [json, text] of [
        [{ name: "Pager", url: "https://127.1/" }, "url: not a public address"],
        [
          { name: "Pager", url: "http://93.184.216.34/" },
          "url: expected an https address of at most 2048 characters"
        ],
        [{ name: "", url: hook.url }, "name: expected text of 1 to 100 characters on one line"],
        [{ name: "Pager" }, "url: is required"],
        [{ name: "Pager", url: hook.url, kind: "pager" }, 'kind: expected "webhook" | "slack" | "discord"']
      ] as const)
        assert.deepStrictEqual(faultOf(yield* add(json)), [400, text])
      const stranger = yield* makeStage
      assert.strictEqual((yield* add({ name: "x", url: hook.url }, stranger.key, id)).status, 404)
    })
  )
})
