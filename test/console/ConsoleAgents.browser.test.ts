import { assert, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { AgentSocket, type Frame } from "#test/agents/rest/AgentSocket.ts"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { ask, textAt, type Reachable } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, focusedIn, openConsole, overflowOf } from "./ConsolePage.ts"

const diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"

describeWith(chromiumPresent, "agents at /, in Chromium,", () => {
  let server: Reachable
  let browser: Browser
  let opened: Array<ConsolePage> = []
  let sockets: Array<AgentSocket> = []
  let people = 0

  const newPerson = async (): Promise<string> => {
    const json = { email: `agent-${++people}@example.org`, name: "P" }
    const id = textAt(await ask(server, "POST", "/api/v1/admin/users", { json }), "id")
    await ask(server, "POST", "/api/v1/credits/topups", { json: { user_id: id, amount_usd: 5 } })
    const key = { name: "k", kind: "account", user_id: id }
    return textAt(await ask(server, "POST", "/api/v1/keys", { json: key }), "key")
  }
  const open = async (key: string, query = "?room=agents", shape = {}): Promise<ConsolePage> => {
    const console = await openConsole(browser, `${server.url}/${query}`, [key], shape)
    opened.push(console)
    await console.enterKey(key)
    return console
  }
  const attach = async (key: string, name: string, hello: object = {}): Promise<AgentSocket> => {
    const workspace = { root: `/home/ada/${name}`, name }
    const socket = await AgentSocket.open(server.url, key, { model: "sandbox/coder", workspace, ...hello })
    sockets.push(socket)
    return socket
  }
  /** Sends the client so many calls. */
  const call = async (socket: AgentSocket, count: number): Promise<Frame> => {
    const asked = () => socket.heard.filter(({ type }) => type === "tool.request")
    await until(`${count} calls`, async () =>
      asked().length >= count ? undefined : JSON.stringify(socket.heard.slice(-5))
    )
    return asked()[count - 1] ?? {}
  }
  const answer = ({ callId }: Frame, outcome: object) => ({
    type: "tool.result",
    callId,
    durationMs: 1_500,
    ...outcome
  })
  const tool = (page: Page, text: string) => page.locator(".tool-call > summary").filter({ hasText: text })

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = (await sharedServer()).server
    browser = await sharedBrowser()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.leave()
    const pages = opened
    opened = []
    for (const console of pages) await console.close()
  })

  it("tells who has no session how the first one comes about", async () => {
    const { page } = await open(await newPerson())
    await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor()
    await page.getByText("No sessions yet.").waitFor()
    await page.getByRole("heading", { name: "Get the client" }).waitFor()
    await page.getByText("signalbox-agent login").waitFor()
    await page.getByText("It asks sandbox/coder").waitFor()
  })

  it("follows a session while it works: words, calls, changes and cost appear by themselves", async () => {
    const key = await newPerson()
    const socket = await attach(key, "abacus")
    const { figure, page, query, shows } = await open(key)
    await page
      .getByRole("region", { name: "Live" })
      .getByRole("link", { name: /abacus/ })
      .click()
    assert.strictEqual(query(), `?room=agents&session=${socket.sessionId}`)
    await shows("session-state", "waiting for its person")
    await page.getByText("Nothing was said yet.").waitFor()

    const steps = ["think Hm.", "say I look.", "read a.txt", 'edit a.txt: "one" => "two"', "run rm -rf /"]
    const text = ["Mend <b>it</b>.", "plan:", ...steps, "say All is done."].join("\n")
    socket.say({ type: "prompt", id: "p-1", text })
    const read = await call(socket, 1)
    await tool(page, "a.txt").filter({ hasText: "under way" }).waitFor()
    await shows("session-state", "at work")
    await page.getByText("Mend <b>it</b>.").waitFor()
    await page.getByText("I look.", { exact: true }).waitFor()

    socket.say(answer(read, { ok: true, result: { content: "one\n", totalLines: 1, truncated: false } }))
    socket.say(answer(await call(socket, 2), { ok: true, result: { diff, replacements: 1 } }))
    const error = { code: "denied", message: "The person said no" }
    socket.say(answer(await call(socket, 3), { ok: false, denied: true, error }))
    await socket.hear("prompt.done")
    await page.getByText("All is done.", { exact: true }).waitFor()
    await shows("session-calls", "3, 1 denied")
    await tool(page, "read").filter({ hasText: "done 1.5 s" }).waitFor()

    // Folded contents are not in the page before they are opened.
    assert.strictEqual(await page.getByText("Hm.", { exact: true }).count(), 0)
    await page.locator(".fold > summary").filter({ hasText: "Thinking" }).click()
    await page.getByText("Hm.", { exact: true }).waitFor()
    await tool(page, "edit").click()
    await page.locator(".diff-removed").getByText("-one").waitFor()
    await page.locator(".diff-added").getByText("+two").waitFor()
    await tool(page, "rm -rf /").filter({ hasText: "denied" }).click()
    await page.getByText("The person said no").waitFor()

    const { body } = await ask(server, "GET", `/api/v1/agent/sessions/${socket.sessionId}`, { key })
    const { cost_usd } = body as { readonly cost_usd: number }
    assert.isAbove(cost_usd, 0)
    assert.strictEqual(Number((await figure("session-cost").innerText()).replace("$", "")), cost_usd)

    socket.say({ type: "bye" })
    await shows("session-state", "ended by its client")
    assert.strictEqual(await page.getByRole("button", { name: "End session" }).count(), 0)
    await page.goBack()
    await page.getByRole("region", { name: "Earlier" }).getByText("3 tool calls, 1 denied").waitFor()
  })

  it("ends a session after a second press, and not where the person keeps it", async () => {
    const key = await newPerson()
    const socket = await attach(key, "to-be-ended")
    const { page, shows } = await open(key, `?room=agents&session=${socket.sessionId}`)
    await page.getByRole("button", { name: "End session" }).click()
    await page.getByText("it cannot be resumed").waitFor()
    assert.strictEqual(await focusedIn(page), "Keep it")
    await page.keyboard.press("Enter")
    await page.getByRole("button", { name: "End session" }).click()
    assert.isUndefined(socket.closedWith)
    await page.getByRole("button", { name: "End it" }).click()
    await shows("session-state", "ended by its owner")
    assert.isDefined(await socket.closed())
    const again = await attach(key, "to-be-ended", { resume: socket.sessionId })
    assert.strictEqual(again.find("error")?.["code"], "unknown_session")
  })

  it("shows nothing of somebody else’s session, and shows that a client is away", async () => {
    const [key, other] = [await newPerson(), await newPerson()]
    const socket = await attach(key, "mine")
    const foreign = await open(other, `?room=agents&session=${socket.sessionId}`)
    await foreign.page.getByRole("heading", { name: "No such session" }).waitFor()
    const own = await open(key)
    await own.page.getByText("waiting for its person").waitFor()
    socket.leave()
    await own.page.getByText("its client is away").waitFor()
  })

  it.each(["light", "dark"] as const)("fits a phone, in %s", async (colorScheme) => {
    const key = await newPerson()
    const name = "a-workspace-with-a-very-long-name-that-has-no-place-to-break-anywhere-at-all"
    const socket = await attach(key, name)
    const long = "x".repeat(300)
    socket.say({ type: "prompt", id: "p-1", text: `${long}\nplan:\nrun echo ${long}\nsay ${long}` })
    const result = { exitCode: 0, output: `${long}\n`, truncated: false }
    socket.say(answer(await call(socket, 1), { ok: true, result }))
    await socket.hear("prompt.done")
    const { page } = await open(key, "?room=agents", { width: 360, colorScheme })
    await page.getByRole("link", { name: new RegExp(name) }).waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByRole("link", { name: new RegExp(name) }).click()
    await tool(page, "echo").click()
    await page.getByRole("group", { name: "Came back" }).waitFor()
    assert.isAtMost(await overflowOf(page), 0)
    await page.getByRole("button", { name: "End session" }).click()
    assert.isAtMost(await overflowOf(page), 0)
  })
})
