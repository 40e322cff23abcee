import { ask, byId, onPress } from "./browser.js"

// A link by which a chat of Telegram joins, on both pages: it holds a code, and the page waits for its use.

const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

const say = (text) => {
  byId("telegram-state").textContent = text
}

/** The last code that was made here: an earlier one is not waited for any more. */
let current

const wait = async (id, used) => {
  for (let failures = 0; ;) {
    await pause(2_000)
    if (current !== id) return
    try {
      const { state } = await ask("GET", `/telegram-codes/${id}`)
      failures = 0
      if (current !== id || state === "waiting") continue
      byId("telegram-links").hidden = true
      say("")
      if (state === "used") return used()
      return say("The link is too old. Make another one.")
    } catch (error) {
      // The server may be away for a moment; a code that it has forgotten does not come back.
      if (error.status === 404 || ++failures > 30) return say(error.message)
    }
  }
}

/** @param make asks for a code; used: what follows its use */
export const offerTelegram = (make, used) => {
  const place = byId("telegram")
  if (place === null) return
  onPress(byId("telegram-make"), byId("telegram-problem"), async () => {
    const { groupUrl, id, startUrl } = await make()
    byId("telegram-start").href = startUrl
    byId("telegram-group").href = groupUrl
    byId("telegram-links").hidden = false
    say("Press Start there. The link is good for 15 minutes, and once.")
    byId("telegram-start").focus()
    current = id
    void wait(id, used)
  })
}
