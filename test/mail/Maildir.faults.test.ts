import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { commandsOf, runCommands } from "#test/docs/Readme.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { exim, type EximServer, startExim } from "./EximServer.ts"

describeWith(exim, "with SMTP_URL of a mail server", () => {
  const scope = Scope.makeUnsafe()
  let mta: EximServer
  let server: ServerProcess

  beforeAll(async () => {
    mta = await Effect.runPromise(startExim.pipe(Scope.provide(scope)))
    const env = { ROOMS: "accounts,mail", SMTP_URL: `smtp://127.0.0.1:${mta.port}` }
    server = await startServer({ env })
  })
  afterAll(async () => {
    await server?.dispose()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("README's mail, sent with the administrator's key, is in a Maildir, byte for byte", async () => {
    const [commands = ""] = commandsOf("Sending mail")
    const key = server.adminKey()
    const printed = await runCommands(commands, { url: server.url, key })
    const email = JSON.parse(printed.slice(0, printed.lastIndexOf("}") + 1)) as {
      readonly id: string
      readonly recipients: ReadonlyArray<{ readonly status: string; readonly last_reply: string }>
    }
    const [recipient] = email.recipients
    assert.strictEqual(recipient?.status, "sent")
    assert.match(recipient?.last_reply ?? "", /^250 OK id=/)
    await until("it is in the Maildir", async () =>
      (await mta.mails()).length === 1 ? undefined : "no mail"
    )
    const response = await fetch(`${server.url}/api/v1/emails/${email.id}/raw`, {
      headers: { authorization: `Bearer ${key}` }
    })
    const raw = Buffer.from(await response.arrayBuffer()).toString("latin1")
    const [mail = ""] = await mta.mails()
    assert.match(raw, new RegExp(`^Message-ID: <${email.id}@example\\.com>\r$`, "im"))
    assert.include(raw, "Thank you, Ada.")
    assert.isTrue(mail.endsWith(raw.replaceAll("\r\n", "\n")), mail)
    // The server puts its own line in front, which says for whom the mail came.
    assert.match(mail.slice(0, -raw.replaceAll("\r\n", "\n").length), /^Received: .*for ada@example\.org;/s)
  })
})
