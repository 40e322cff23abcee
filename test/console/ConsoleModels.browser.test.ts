import { assert, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { afterEach, beforeAll } from "vitest"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { ask, textAt, type Reachable } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { ensureConsoleBuilt } from "./BuiltConsole.ts"
import { type ConsolePage, openConsole, overflowOf } from "./ConsolePage.ts"

/** A picture of one pixel. */
const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64"
)

interface Person {
  readonly id: string
  readonly key: string
}

describeWith(chromiumPresent, "models at /, in Chromium,", () => {
  let server: Reachable
  let browser: Browser
  let opened: Array<ConsolePage> = []
  let people = 0

  const newKey = async (userId: string, fields: object = {}): Promise<string> =>
    textAt(
      await ask(server, "POST", "/api/v1/keys", {
        json: { name: "k", kind: "account", user_id: userId, ...fields }
      }),
      "key"
    )
  /** A new user, so that their charges are told from those of others. */
  const newPerson = async (creditsUsd = 5): Promise<Person> => {
    const made = await ask(server, "POST", "/api/v1/admin/users", {
      json: { email: `models-${++people}@example.org`, name: "P" }
    })
    const id = textAt(made, "id")
    if (creditsUsd > 0) {
      const json = { user_id: id, amount_usd: creditsUsd }
      const topUp = await ask(server, "POST", "/api/v1/credits/topups", { json })
      assert.strictEqual(topUp.status, 201)
    }
    return { id, key: await newKey(id) }
  }
  const open = async (key: string, query = "?room=models", shape = {}): Promise<ConsolePage> => {
    const console = await openConsole(browser, `${server.url}/${query}`, [key, server.adminKey()], shape)
    opened.push(console)
    await console.enterKey(key)
    await console.page.getByRole("heading", { name: "Models", level: 1 }).waitFor()
    return console
  }
  const run = async (page: Page, model: string, message: string): Promise<void> => {
    await page.getByLabel(/^Model or collection/).fill(model)
    await page.getByLabel("Message").fill(message)
    await page.getByRole("button", { name: "Run" }).click()
  }
  const credits = async (key: string) => {
    const { body } = await ask(server, "GET", "/api/v1/credits", { key })
    return body as {
      readonly balance_usd: number
      readonly lifetime_spent_usd: number
      readonly lifetime_topped_up_usd: number
    }
  }
  const alert = (page: Page, words: string) => page.getByRole("alert").filter({ hasText: words })

  beforeAll(async () => {
    await ensureConsoleBuilt()
    server = (await sharedServer()).server
    browser = await sharedBrowser()
  })
  afterEach(async () => {
    const pages = opened
    opened = []
    for (const console of pages) await console.close()
  })

  it("shows a completion word by word, and a cost that is the ledger's to the last digit", async () => {
    const { key } = await newPerson()
    const { figure, page, shows } = await open(key)
    // The reader's view after every change, at any time.
    await page.evaluate(`
      window.seen = []
      const answer = document.querySelector("[data-figure=answer]")
      new MutationObserver(() => window.seen.push(answer.textContent)).observe(answer, {
        subtree: true, childList: true, characterData: true
      })
    `)
    await run(page, "sandbox/slow", "Tell me of the signal box at the junction, please")
    await shows("state", "Done.")
    const text = await figure("answer").innerText()
    const seen: ReadonlyArray<string> = await page.evaluate("window.seen")
    const steps = seen.filter((now, index) => index > 0 && now.length > (seen[index - 1]?.length ?? 0))
    assert.isAtLeast(steps.length, 10, JSON.stringify(seen))
    for (const step of steps) assert.isTrue(text.startsWith(step.trimEnd()), `${step} is no part of ${text}`)
    assert.include(text, "signal box at the junction")

    const shown = await figure("cost").innerText()
    const { balance_usd, lifetime_spent_usd } = await credits(key)
    assert.isAbove(lifetime_spent_usd, 0)
    assert.strictEqual(Number(shown.replace("$", "")), lifetime_spent_usd)
    assert.closeTo(5 - balance_usd, lifetime_spent_usd, 1e-12)
    await shows("resolved", "sandbox/slow")
    await shows("stages", "primary")
    await shows("attempts", "1")
    await figure("tokens")
      .filter({ hasText: /^\d+ in, \d+ out$/ })
      .waitFor()
    await figure("first-token").filter({ hasText: /s$/ }).waitFor()
    // Credits and usage follow by themselves.
    await shows("requests", "1")
    await shows("errors", "0")
    await until("the balance", async () => {
      const balance = Number((await figure("balance").innerText()).replace("$", ""))
      return Math.abs(balance - balance_usd) < 1e-6 ? undefined : `${balance}`
    })
  })

  it("stops on demand: what was written stays, and nothing goes on at the server", async () => {
    const { key } = await newPerson()
    const { figure, page } = await open(key)
    await run(page, "sandbox/slow", "word ".repeat(300))
    await figure("answer").filter({ hasText: "word word word" }).waitFor()
    await page.getByRole("button", { name: "Stop" }).click()
    await figure("state").filter({ hasText: "Stopped." }).waitFor()
    const text = await figure("answer").innerText()
    assert.isBelow(text.length, 1_500)
    await until("no call under way", async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      if (/^signalbox_model_requests_in_flight 0$/m.test(metrics)) return undefined
      return metrics
        .split("\n")
        .filter((line) => /^signalbox_(model|http|front)/.test(line))
        .join("\n")
    })
    await until("a charge for what was produced", async () =>
      (await credits(key)).lifetime_spent_usd > 0 ? undefined : "nothing was charged"
    )
    assert.strictEqual(await figure("answer").innerText(), text)
    await page.getByRole("button", { name: "Run" }).and(page.locator(":enabled")).waitFor()
  })

  it("tells in words why there is no answer", async () => {
    const poor = await open((await newPerson(0)).key)
    await run(poor.page, "sandbox/echo", "hello")
    await alert(poor.page, "The credits do not cover this call").waitFor()
    assert.strictEqual(await poor.figure("cost").count(), 0)

    const { id, key } = await newPerson()
    const scoped = await open(await newKey(id, { kind: "router", models: ["sandbox/echo"] }))
    await run(scoped.page, "sandbox/slow", "hello")
    await alert(scoped.page, "This key may not use sandbox/slow").waitFor()

    const { page } = await open(key)
    await run(page, "sandbox/fails", "hello")
    await alert(page, "No model could answer").waitFor()
    await run(page, "sandbox/nowhere", "hello")
    await alert(page, "There is no model sandbox/nowhere").waitFor()
    for (const [status, type, words] of [
      [429, "rate_limit_error", "Try again in 7 seconds"],
      [503, "server_error", "Not possible at the moment"]
    ] as const) {
      const error = { message: "Enough", type, code: null, param: null }
      await page.route("**/chat/completions", (route) =>
        route.fulfill({ status, headers: { "retry-after": "7" }, json: { error } })
      )
      await page.getByRole("button", { name: "Run" }).click()
      await alert(page, words).waitFor()
      await page.unroute("**/chat/completions")
    }
  })

  it("begins with a model that answers: without credits a free one, of those that the key may use", async () => {
    const { id, key } = await newPerson(0)
    const { page, shows } = await open(key)
    await page.getByLabel("Message").fill("hello")
    await page.getByRole("button", { name: "Run" }).click()
    await shows("state", "Done.")

    const scoped = await newKey(id, { kind: "router", models: ["sandbox/echo", "sandbox/free"] })
    const { page: other } = await open(scoped)
    await until("the free one of its models", async () => {
      const model = await other.getByLabel(/^Model or collection/).inputValue()
      return model === "sandbox/free" ? undefined : `${model} is chosen`
    })
  })

  it("begins with a model that answers: with credits one that they cover, of a price that is known", async () => {
    const { key } = await newPerson()
    const { page, shows } = await open(key)
    await page.getByLabel("Message").fill("hello")
    await page.getByRole("button", { name: "Run" }).click()
    await shows("state", "Done.")
    const model = await page.getByLabel(/^Model or collection/).inputValue()
    assert.notInclude(["sandbox/auto", "sandbox/breaks", "sandbox/embed"], model)
  })

  it("says where credits come from, where they do not cover a call", async () => {
    const { id, key } = await newPerson(0)
    const { page } = await open(key)
    await run(page, "sandbox/echo", "hello")
    await alert(page, "The credits do not cover this call").waitFor()
    await page.getByText("An administrator of this server adds credits").first().waitFor()
    const command = page.getByText(`npm run -s signalbox -- credits topup ${id} 20`)
    await command.first().waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Add credits" }).count(), 0)
  })

  it("lets an administrator add credits where they are missing, once however often it is sent", async () => {
    const before = await credits(server.adminKey())
    const { figure, page, requests, shows } = await open(server.adminKey())
    await run(page, "sandbox/echo", "hello")
    await alert(page, "The credits do not cover this call").waitFor()
    const answer = page.getByRole("region", { name: "Answer" })
    await answer.getByLabel("Amount in USD").fill("3")
    // The first answer is lost on its way: it is not known whether the credits were added.
    await page.route("**/credits/topups", async (route) => {
      await route.fetch()
      await route.abort()
    })
    await answer.getByRole("button", { name: "Add credits" }).click()
    await alert(page, "The server does not answer").waitFor()
    await page.unroute("**/credits/topups")
    await answer.getByRole("button", { name: "Add credits" }).click()
    await answer.getByText("$3.00 added").waitFor()
    await figure("topped-up")
      .filter({ hasText: `$${(before.lifetime_topped_up_usd + 3).toFixed(2)}` })
      .waitFor()
    assert.strictEqual(
      requests.filter((request) => request.url().endsWith("/topups") && request.method() === "POST").length,
      2
    )
    await page.getByRole("button", { name: "Run" }).click()
    await shows("state", "Done.")
  })

  it("keeps what was said of an answer that breaks off, and says that it did", async () => {
    const { key } = await newPerson()
    const { figure, page } = await open(key)
    await run(page, "sandbox/breaks", "one two three four five six seven eight nine")
    await alert(page, "The answer broke off").waitFor()
    assert.isAbove((await figure("answer").innerText()).length, 5)
    assert.strictEqual((await credits(key)).lifetime_spent_usd, 0)
  })

  it("sends an image to a collection of vision and text models, and shows both stages", async () => {
    const { key } = await newPerson()
    const made = await ask(server, "POST", "/api/v1/collections", {
      key,
      json: { name: "Eyes", models: ["sandbox/vision", "sandbox/echo"] }
    })
    const model = textAt(made, "model")
    const { figure, page, shows } = await open(key)
    await page.getByLabel(/^Image/).setInputFiles({ name: "p.png", mimeType: "image/png", buffer: pixel })
    await page.getByRole("img", { name: "Chosen: p.png" }).waitFor()
    await run(page, model, "What is this?")
    await shows("state", "Done.")
    await shows("stages", "vision, then primary")
    await shows("attempts", "2")
    await shows("resolved", "sandbox/echo")
    const shown = await figure("cost").innerText()
    assert.strictEqual(Number(shown.replace("$", "")), (await credits(key)).lifetime_spent_usd)
    await page.getByRole("button", { name: "Remove the image" }).click()
    assert.strictEqual(await page.getByRole("img", { name: "Chosen: p.png" }).count(), 0)
  })

  it("passes temperature and most tokens on, and asks no model that writes no text", async () => {
    const { key } = await newPerson()
    const { page, requests, shows } = await open(key)
    await page.getByLabel(/^System/).fill("Be brief")
    await page.getByLabel(/^Temperature/).fill("0.5")
    await page.getByLabel(/^Most tokens/).fill("3")
    await run(page, "sandbox/echo", "one two three four five six")
    await shows("state", "Done: it ends at the limit of tokens.")
    const sent = requests.find((request) => request.url().endsWith("/chat/completions"))?.postDataJSON()
    assert.deepInclude(sent, { model: "sandbox/echo", temperature: 0.5, max_tokens: 3, stream: true })
    assert.deepStrictEqual(sent.messages, [
      { role: "system", content: "Be brief" },
      { role: "user", content: "one two three four five six" }
    ])
    const offered: ReadonlyArray<string> = await page.evaluate(
      `Array.from(document.querySelectorAll("datalist option"), ({ value }) => value)`
    )
    assert.include(offered, "sandbox/echo")
    assert.notInclude(offered, "sandbox/embed")
  })

  it("shows usage by window, measure and model; all of it is in the address", async () => {
    const { key } = await newPerson()
    for (const model of ["sandbox/echo", "sandbox/fails"]) {
      const json = { model, messages: [{ role: "user", content: "hello" }] }
      await ask(server, "POST", "/api/v1/chat/completions", { key, json })
    }
    const { figure, page, query, shows } = await open(key, "?room=models&window=month")
    await shows("requests", "2")
    await shows("errors", "1")
    await shows("balance", `$${(await credits(key)).balance_usd.toFixed(6)}`)
    await page.getByRole("link", { name: "Hour", exact: true }).click()
    await page.locator(".figures[aria-busy=false]").waitFor()
    assert.strictEqual(query(), "?room=models&window=hour")
    await page.getByRole("link", { name: "Tokens", exact: true }).click()
    assert.strictEqual(query(), "?room=models&window=hour&usage=tokens")
    await page.getByRole("slider").focus()
    await page.keyboard.press("End")
    await figure("readout")
      .filter({ hasText: /: [\d,]+ tokens?$/ })
      .waitFor()
    const row = page.getByRole("row").filter({ hasText: "sandbox/echo" })
    await row.filter({ hasText: /1\s*\d+\s*<?\$0\.0000\d+/ }).waitFor()
    await page.getByRole("link", { name: "Ever" }).click()
    await shows("resets", "never")
    await page.goBack()
    assert.strictEqual(query(), "?room=models&window=hour&usage=tokens")
  })

  it("opens for a router's key, which sees no sites", async () => {
    const { id } = await newPerson()
    const key = await newKey(id, { kind: "router", spend_limit_usd: 2 })
    const { page, query, shows } = await open(key, "")
    assert.strictEqual(query(), "?room=models")
    await shows("key-spent", "$0.00")
    await page.getByText("of $2.00").waitFor()
    assert.strictEqual(await page.getByRole("link", { name: "Sites" }).count(), 0)
    await page.getByRole("button", { name: "Account: Router key" }).click()
    await page.getByText("a reload asks for it again").waitFor()
    await page.getByRole("button", { name: "Forget key" }).click()
    await page.getByText("The key is forgotten.").waitFor()
  })

  it.each(["light", "dark"] as const)("fits a phone, in %s", async (colorScheme) => {
    const { key } = await newPerson()
    const { page, shows } = await open(key, "?room=models&usage=cost", { width: 360, colorScheme })
    assert.isAtMost(await overflowOf(page), 0)
    await run(page, "sandbox/echo", "hello")
    await shows("state", "Done.")
    await shows("requests", "1")
    await page.getByRole("row").filter({ hasText: "sandbox/echo" }).waitFor()
    assert.isAtMost(await overflowOf(page), 0)
  })
})
