import { assert } from "@effect/vitest"
import { Effect, Layer, ManagedRuntime } from "effect"
import type { Locator } from "playwright-core"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { sharedBrowser } from "#test/harness/Browser.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { hurry, impatient } from "#test/mail/RelayedServer.ts"
import { plain } from "#test/mail/Stage.ts"
import { ensureConsoleBuilt } from "../BuiltConsole.ts"
import { type ConsolePage, openConsole } from "../ConsolePage.ts"

const bounceDomain = "bounces.example.com"

const stage = Layer.unwrap(
  Effect.map(DnsServer, ({ address }) =>
    TestServer.own({
      limits: impatient,
      mailDomains: {
        spf: ["ip4:192.0.2.1"],
        bounceDomain,
        hostname: "mx.example.com",
        fromDomains: new Set(),
        nameServers: [address]
      }
    })
  )
).pipe(Layer.provideMerge(DnsServer.layer))

/** A server of the sandbox with the name server of the test, and a person's page of mail. */
export const newMailUser = async () => {
  await ensureConsoleBuilt()
  const runtime = ManagedRuntime.make(stage)
  const { makeUser, server } = await runtime.runPromise(TestServer)
  const dns = await runtime.runPromise(DnsServer)
  const { key } = await runtime.runPromise(makeUser())
  const browser = await sharedBrowser()
  let opened: Array<ConsolePage> = []
  return {
    server,
    key,
    dns,
    /** the pauses of deferred deliveries are over */
    hurry: () => runtime.runPromise(hurry),
    send: async (fields: object): Promise<string> =>
      textAt(await ask(server, "POST", "/send", { key, json: { ...plain, ...fields } }), "message_id"),
    /** once it has been tried */
    sent: async (fields: object): Promise<string> => {
      const id = textAt(
        await ask(server, "POST", "/send", { key, json: { ...plain, ...fields } }),
        "message_id"
      )
      assert.strictEqual((await ask(server, "GET", `/api/v1/emails/${id}?wait=30`, { key })).status, 200)
      return id
    },
    open: async (query = "", shape: Parameters<typeof openConsole>[3] = {}): Promise<ConsolePage> => {
      const console = await openConsole(browser, `${server.url}/?room=mail${query}`, [key], shape)
      opened.push(console)
      await console.enterKey(key)
      await console.page.getByRole("navigation", { name: "Parts of this room" }).waitFor()
      return console
    },
    closePages: async () => {
      const pages = opened
      opened = []
      for (const console of pages) await console.close()
    },
    dispose: () => runtime.dispose()
  }
}

export type MailUser = Awaited<ReturnType<typeof newMailUser>>

/** The rows of a list. */
export const linesOf = ({ page }: ConsolePage, list: string): Locator =>
  page.getByRole("list", { name: list, exact: true }).getByRole("listitem")
