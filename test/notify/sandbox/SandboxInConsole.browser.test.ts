import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ensureConsoleBuilt } from "#test/console/BuiltConsole.ts"
import { openConsole } from "#test/console/ConsolePage.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { sharedServer } from "#test/harness/TestServer.ts"

describeWith(chromiumPresent, "the console's room of notifications, in Chromium,", () => {
  it("leads to the inbox of the sandbox", async () => {
    await ensureConsoleBuilt()
    const shared = await sharedServer()
    const { key } = await Effect.runPromise(shared.makeUser())
    const opened = await openConsole(await sharedBrowser(), `${shared.url}/?room=notify`, [key])
    await opened.enterKey(key)
    const link = opened.page.getByRole("link", { name: "its inbox" })
    const address = await link.getAttribute("href")
    assert.match(address ?? "", /^http:\/\/127\.0\.0\.1:\d+\/$/)
    // Another origin than the console's: its page is not one that the console asks for.
    await opened.close()
    assert.include(await (await fetch(String(address))).text(), "Inbox of the sandbox")
  })
})
