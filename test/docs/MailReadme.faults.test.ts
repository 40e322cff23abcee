import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { commandsOf, runCommands } from "./Readme.ts"

layer(TestServer.own(), { excludeTestServices: true })("README's commands of mail", (it) => {
  it.effect("send one that is sent within five seconds, and find it in the inbox of the sandbox", () =>
    Effect.gen(function* () {
      const { adminKey, ask, url } = yield* TestServer
      const blocks = commandsOf("Sending mail")
      assert.lengthOf(blocks, 1)
      const printed = yield* Effect.promise(() => runCommands(blocks[0] ?? "", { url, key: adminKey }))
      // curl writes no line's end behind the JSON, and the table has no braces.
      const end = printed.lastIndexOf("}") + 1
      const email = JSON.parse(printed.slice(0, end)) as {
        readonly id: string
        readonly recipients: ReadonlyArray<{ readonly address: string; readonly status: string }>
      }
      assert.deepStrictEqual(
        email.recipients.map((recipient) => [recipient.address, recipient.status]),
        [["ada@example.org", "sent"]]
      )
      const rows = printed
        .slice(end)
        .split("\n")
        .filter((line) => line.includes("Your invoice"))
      assert.lengthOf(rows, 1)
      for (const text of ["ada@example.org", "shop@example.com"]) assert.include(rows[0], text)
      const inbox = (yield* ask("GET", "/api/v1/emails/inbox")).json as {
        readonly emails: ReadonlyArray<{ readonly email_id: string }>
      }
      assert.deepStrictEqual(
        inbox.emails.map(({ email_id }) => email_id),
        [email.id]
      )
    })
  )
})
