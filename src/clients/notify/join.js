import {
  ask,
  byId,
  onPress,
  pushOf,
  pushProblem,
  recall,
  Refused,
  remember,
  showSecret,
  subscribe,
  webhookGiven
} from "./browser.js"
import { offerTelegram } from "./telegram.js"

// Joining a project: by this browser, a chat of Telegram, or a webhook.

const place = byId("join")
const { key } = place.dataset
const link = location.pathname.split("/").at(-1)

const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC"

/** As the subscriber of this browser, if there is one. */
const join = async (address, way = "") => {
  const name = byId("name").value.trim()
  const json = { timezone, ...(name === "" ? {} : { name }), ...address }
  const { token } = recall()
  const path = `/join/${link}${way}`
  try {
    return await ask("POST", path, { token, json })
  } catch (error) {
    // They have left, or made another link.
    if (token === undefined || !(error instanceof Refused) || error.status !== 401) throw error
    return await ask("POST", path, { json })
  }
}

const tokenIn = (settingsUrl) => settingsUrl.split("#")[1]

const show = (id) => {
  place.hidden = true
  byId(id).hidden = false
  byId(id).querySelector("h2").focus()
}

const problem = pushProblem()
if (problem === undefined) byId("push").hidden = false
else {
  byId("no-push").textContent = problem
  byId("webhook").open = true
}

onPress(byId("push"), byId("push-problem"), async () => {
  const push = pushOf(await subscribe(key))
  const { channel, settingsUrl } = await join({ push })
  await remember({ token: tokenIn(settingsUrl), channel: channel.id, endpoint: push.endpoint, key })
  show("joined")
})

onPress(byId("webhook-form"), byId("webhook-problem"), async () => {
  const { secret, settingsUrl } = await join({ webhook: webhookGiven() })
  await remember({ token: tokenIn(settingsUrl), key })
  showSecret(secret)
  byId("settings-url").textContent = settingsUrl
  show("added")
})

offerTelegram(
  () => join({}, "/telegram"),
  () => show("in-telegram")
)

place.hidden = false
