import { ask, byId, onPress, pushOf, pushProblem, recall, Refused, remember, subscribe } from "./browser.js"

// Joining a project: by this browser, or by a webhook.

const place = byId("join")
const { key } = place.dataset
const link = location.pathname.split("/").at(-1)

const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC"

/** As the subscriber of this browser, if there is one. */
const join = async (address) => {
  const name = byId("name").value.trim()
  const json = { timezone, ...(name === "" ? {} : { name }), ...address }
  const { token } = recall()
  try {
    return await ask("POST", `/join/${link}`, { token, json })
  } catch (error) {
    // They have left, or made another link.
    if (token === undefined || !(error instanceof Refused) || error.status !== 401) throw error
    return await ask("POST", `/join/${link}`, { json })
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
  const { secret, settingsUrl } = await join({ webhook: { url: byId("url").value.trim() } })
  await remember({ token: tokenIn(settingsUrl), key })
  byId("secret").textContent = secret
  byId("settings-url").textContent = settingsUrl
  show("added")
})

place.hidden = false
