import { networkInterfaces } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { webhookSecret } from "#streams/notify/channels/Webhook.ts"
import { EgressSystem } from "#src/infra/egress/Egress.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { corpusAddresses, loopback, others } from "#test/infra/egress/EgressCorpus.ts"
import { everywhere, TestNames } from "#test/infra/egress/EgressStage.ts"
import { PushBrowser } from "./channels/PushBrowser.ts"
import { addChannel, allEnded } from "./delivery/DeliveryStage.ts"
import { sandboxOfServer } from "./Sandbox.ts"
import { faultOf, live, makeStage, sent, subscriber } from "./Stage.ts"
import { join, joined, openProject, subscription } from "./subscribers/SubscriberStage.ts"

/** Names that are public when they are first looked up, and lead here, or where no stranger may, from the second time on. */
const later = {
  "loopback.rebind.test": ["127.0.0.1"],
  "six.rebind.test": ["::1"],
  "mapped.rebind.test": ["::ffff:127.0.0.1"],
  "mixed.rebind.test": ["8.8.8.8", "127.0.0.1"],
  "unspecified.rebind.test": ["0.0.0.0"],
  "nat64.rebind.test": ["64:ff9b::127.0.0.1"],
  "private.rebind.test": ["10.0.0.5"],
  "metadata.rebind.test": ["169.254.169.254"],
  "own.rebind.test": Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address)
    .slice(0, 1)
}
const rebinding = Object.entries(later).filter(([, addresses]) => addresses.length > 0)

const hosts = [...loopback, ...others.map(([host]) => host)]

const names = () =>
  new TestNames({
    ...Object.fromEntries(
      rebinding.flatMap(([name, addresses]) =>
        [name, `hook.${name}`].map((one) => [one, [["8.8.8.8"], addresses]])
      )
    ),
    ...corpusAddresses
  })

const server = TestServer.own().pipe(
  Layer.provide(Layer.succeed(EgressSystem, { interfaces: networkInterfaces, dns: names().dns }))
)

const addressesOf = (host: string, port: number): ReadonlyArray<string> => {
  const inUrl = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host
  return ["https", "http"].map((scheme) => `${scheme}://${inUrl}:${port}/`)
}

layer(server, live)("addresses of strangers that lead to this machine or its networks", (it) => {
  it.effect(
    "are refused at joining, in every notation, for browsers and web hooks, and none is reached",
    () =>
      Effect.gen(function* () {
        assert.isAtLeast(new Set(hosts).size + rebinding.length, 60)
        const { port, reachedAt } = yield* everywhere
        const { link } = yield* openProject(yield* makeStage)
        for (const address of hosts.flatMap((host) => addressesOf(host, port))) {
          const push = { ...subscription(), endpoint: address }
          const asBrowser = faultOf(yield* join(link, { push }))
          assert.strictEqual(asBrowser[0], 400, address)
          assert.match(String(asBrowser[1]), /^push\.endpoint: (not a public address|expected )/, address)
          const asWebhook = faultOf(yield* join(link, { webhook: { url: address } }))
          assert.strictEqual(asWebhook[0], 400, address)
          assert.match(String(asWebhook[1]), /^webhook\.url: (not a public address|expected )/, address)
        }
        assert.deepStrictEqual(reachedAt, [])
      })
  )

  it.effect("are looked up again when a web hook is asked for its confirmation right after", () =>
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      const { link } = yield* openProject(yield* makeStage)
      for (const [name] of rebinding) {
        const [status, error] = faultOf(
          yield* join(link, { webhook: { url: `https://hook.${name}:${port}/hook` } })
        )
        assert.strictEqual(status, 400, name)
        assert.match(String(error), /^webhook\.url: /, name)
      }
      assert.deepStrictEqual(reachedAt, [])
    })
  )

  it.effect("are dead when sending, however they came into the store, and none is reached", () =>
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      const stage = yield* makeStage
      const sandbox = yield* sandboxOfServer
      const { target } = yield* Effect.promise(() => PushBrowser.make())
      for (const kind of ["push", "webhook"] as const) {
        const project = yield* stage.project()
        const owner = yield* subscriber([project])
        const add = (url: string) =>
          kind === "push"
            ? addChannel(owner, kind, url, { ...target, endpoint: url })
            : addChannel(owner, kind, url, { url, secret: webhookSecret(new Uint8Array(24)) })
        const addresses = hosts
          .map((host, index) => `${addressesOf(host, port)[index % 2]}${kind}/${index}`)
          .filter((address) => URL.canParse(address))
        assert.isAtLeast(addresses.length, 60)
        const added = new Map<string, string>()
        for (const address of addresses) added.set((yield* add(address)).id, address)
        const hook = yield* Effect.promise(() => sandbox.webhook())
        const good = { url: hook.url, secret: webhookSecret(new Uint8Array(24)) }
        const control = yield* addChannel(owner, "webhook", hook.url, good)
        const [message] = (yield* sent(yield* stage.projectKey({ projects: [project] }))).messages
        const shown = yield* allEnded(message?.id ?? "", stage.key)
        assert.strictEqual(shown.length, addresses.length + 1)
        for (const { channel, lastError, status } of shown) {
          if (channel === control.id) {
            // The sandbox has an address of loopback too, and is the only one that may.
            assert.strictEqual(status, "delivered")
            continue
          }
          assert.strictEqual(status, "dead", added.get(channel))
          assert.match(lastError ?? "", /^its address may not be reached: /, added.get(channel))
        }
      }
      assert.deepStrictEqual(reachedAt, [])
    })
  )

  it.effect("are looked up again when sending: a name that was public at joining is not reached", () =>
    Effect.gen(function* () {
      const { port, reachedAt } = yield* everywhere
      const stage = yield* makeStage
      const { id, link } = yield* openProject(stage)
      for (const [name] of rebinding) {
        yield* joined(link, { push: { ...subscription(), endpoint: `https://${name}:${port}/push` } })
      }
      const [message] = (yield* sent(yield* stage.projectKey({ projects: [id] }))).messages
      const shown = yield* allEnded(message?.id ?? "", stage.key)
      assert.strictEqual(shown.length, rebinding.length)
      for (const { lastError, status } of shown) {
        assert.strictEqual(status, "dead", lastError ?? "")
        assert.match(lastError ?? "", /^its address may not be reached: /)
      }
      assert.deepStrictEqual(reachedAt, [])
    })
  )
})
