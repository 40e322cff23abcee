import {
  ask,
  browserName,
  byId,
  element,
  forget,
  isAppleTab,
  named,
  onPress,
  pushOf,
  pushProblem,
  recall,
  Refused,
  remember,
  showSecret,
  subscribe,
  subscription,
  webhookGiven
} from "./browser.js"
import { offerTelegram } from "./telegram.js"
import { showTimes, watchTimes } from "./times.js"

// The settings of a subscriber.

const linked = /^#(sbt_[0-9A-Za-z]{40})$/.exec(location.hash)?.[1]
const own = recall()
let token = linked ?? own.token
/** The page shows another subscriber than the one of this browser. */
let isGuest = linked !== undefined && linked !== own.token
let settings

// The address bar is read by others, and goes into screenshots. An app on an iPhone begins with the address of this page.
if (linked !== undefined && !isAppleTab) history.replaceState(null, "", location.pathname)

const request = (method, path, json) => ask(method, `/subscriber${path}`, { token, json })

const say = (text) => {
  byId("status").textContent = text
}

/** From now on this browser is this subscriber's. */
const adopt = async (more = {}) => {
  const former = isGuest ? { channel: undefined, endpoint: undefined } : {}
  await remember({ ...former, token, key: settings.pushKey, ...more })
  isGuest = false
}

const button = (text, label, run, className = "") => {
  const problem = element("span", { className: "problem", role: "alert" })
  const made = element("button", { type: "button", className, "aria-label": label }, text)
  onPress(made, problem, run)
  return [made, problem]
}

const states = {
  unconfirmed: "waits for its link to be opened",
  active: "on",
  off: "off",
  failing: "failing: ten messages in a row could not be delivered",
  gone: "gone: its service says that it is no more"
}

const choices = {
  inherit: "as set above",
  instant: "at once",
  hourly: "every hour, all in one",
  daily: "once a day, all in one",
  muted: "not at all"
}

/** A change is saved at once; one that fails is undone, and told beside it. */
const projectChoice = ({ delivery, id, name }) => {
  const problem = element("span", { className: "problem", role: "alert" })
  const options = Object.entries(choices).map(([value, text]) => element("option", { value }, text))
  const made = element(
    "select",
    { "aria-label": `Messages of ${name} come`, "data-of": `${id} delivery` },
    options
  )
  made.value = delivery
  made.addEventListener("change", async () => {
    problem.textContent = ""
    try {
      await request("PUT", `/projects/${id}`, { delivery: made.value })
      await refresh(`Saved. Messages of ${name} come ${choices[made.value]}.`)
    } catch (error) {
      made.value = delivery
      problem.textContent = error.message
    }
  })
  return [made, problem]
}

const projectRow = (project) => {
  const { description, id, name } = project
  return element(
    "li",
    {},
    element(
      "div",
      { className: "what" },
      element("strong", {}, named(name)),
      element("span", { className: "hint" }, description === "" ? "" : named(description))
    ),
    element("div", { className: "choice" }, projectChoice(project)),
    element(
      "div",
      { className: "acts" },
      button("Leave", `Leave ${name}`, async () => {
        if (!confirm(`Leave ${name}? To come back you need its link.`)) return
        await request("DELETE", `/projects/${id}`)
        await refresh(`You have left ${name}.`)
      })
    )
  )
}

const services = {
  push: "browser",
  webhook: "webhook",
  slack: "chat",
  discord: "Discord",
  telegram: "Telegram"
}

const titleOf = ({ host, kind, name }) => name || (kind === "push" ? "A browser" : host)

const channelRow = (channel) => {
  const { host, id, kind, name, state } = channel
  const title = titleOf(channel)
  const isHere = !isGuest && id === recall().channel
  const isOn = state === "active"
  const canSwitch = state !== "unconfirmed" && !(kind === "push" && state === "gone")
  return element(
    "li",
    {},
    element(
      "div",
      { className: "what" },
      element("strong", {}, named(title)),
      element(
        "span",
        { className: "hint" },
        isHere
          ? "this browser"
          : ["push", "telegram"].includes(kind) || name === ""
            ? (services[kind] ?? kind)
            : `${services[kind] ?? kind} at ${host}`
      )
    ),
    element("span", { className: `state ${state}` }, states[state]),
    element(
      "div",
      { className: "acts" },
      canSwitch
        ? button(isOn ? "Turn off" : "Turn on", `Turn ${isOn ? "off" : "on"} ${title}`, async () => {
            await request("PATCH", `/channels/${id}`, { state: isOn ? "off" : "active" })
            await refresh(`${title} is ${isOn ? "off" : "on"}.`)
          })
        : undefined,
      isOn
        ? button("Test", `Send a test to ${title}`, async () => {
            const { delivered, error } = await request("POST", `/channels/${id}/test`)
            if (!delivered) throw new Error(`It did not arrive: ${error}`)
            say(`A test went to ${title}.`)
          })
        : undefined,
      button("Remove", `Remove ${title}`, async () => {
        if (!confirm(`Remove ${title}? It gets no more notifications.`)) return
        await request("DELETE", `/channels/${id}`)
        if (isHere) {
          await (await subscription())?.unsubscribe()
          await remember({ channel: undefined, endpoint: undefined })
        }
        await refresh(`${title} is removed.`)
      })
    )
  )
}

/** The control that the keyboard is at is made anew with its row, and has it again. */
const list = (place, rows, none) => {
  const at = place.contains(document.activeElement) ? document.activeElement.dataset.of : undefined
  place.replaceChildren(...(rows.length === 0 ? [element("li", { className: "hint" }, none)] : rows))
  if (at !== undefined)
    [...place.querySelectorAll("[data-of]")].find(({ dataset }) => dataset.of === at)?.focus()
}

const isHere = () =>
  !isGuest && settings.channels.some(({ id, state }) => id === recall().channel && state !== "gone")

const showPush = () => {
  const problem = pushProblem()
  byId("here").hidden = isHere()
  byId("push").hidden = problem !== undefined
  byId("no-push").textContent = isHere() ? "" : (problem ?? "")
}

const show = () => {
  byId("subscriber-name").value = settings.name
  showTimes(settings)
  list(byId("projects"), settings.projects.map(projectRow), "None. Open a project’s link to join it.")
  list(byId("channels"), settings.channels.map(channelRow), "None: nothing reaches you.")
  byId("guest").hidden = !isGuest
  showPush()
  byId("nothing").hidden = true
  byId("settings").hidden = false
}

const refresh = async (text = "") => {
  settings = await request("GET", "")
  show()
  say(text)
}

/** The browser may have made another subscription while no page and no worker could tell the server. */
const reconcile = async () => {
  const { channel, endpoint } = recall()
  const there = await subscription()
  const known = settings.channels.find(({ id }) => id === channel)
  if (isGuest || there === null || known === undefined || there.endpoint === endpoint) return
  await request("PATCH", `/channels/${channel}`, { push: pushOf(there) })
  await remember({ endpoint: there.endpoint })
  await refresh()
}

const nothing = (text) => {
  byId("settings").hidden = true
  byId("nothing").hidden = false
  byId("nothing-text").textContent = text
}

onPress(byId("profile"), byId("profile-problem"), async () => {
  const name = byId("subscriber-name").value.trim()
  settings = await request("PATCH", "", name === "" ? {} : { name })
  show()
  say("Saved.")
})

watchTimes(async (json) => {
  settings = await request("PATCH", "", json)
  show()
  say(`Saved. ${byId("meaning").textContent}`)
})

// It says what comes when: what was shown yesterday is not so today.
document.addEventListener("visibilitychange", async () => {
  if (document.visibilityState !== "visible" || settings === undefined) return
  try {
    showTimes((settings = await request("GET", "")))
  } catch (error) {
    say(error.message)
  }
})

onPress(byId("push"), byId("push-problem"), async () => {
  const push = pushOf(await subscribe(settings.pushKey))
  const channel = await request("POST", "/channels", { push })
  await adopt({ channel: channel.id, endpoint: push.endpoint })
  await refresh(`${browserName()} is on.`)
})

offerTelegram(
  () => request("POST", "/telegram"),
  () => refresh("The chat in Telegram is on.")
)

onPress(byId("webhook-form"), byId("webhook-problem"), async () => {
  const { secret } = await request("POST", "/channels", { webhook: webhookGiven() })
  showSecret(secret)
  byId("url").value = ""
  await refresh("A link was posted to the webhook. Open it there to confirm.")
})

onPress(byId("keep"), byId("keep-problem"), async () => {
  await adopt()
  await refresh("This browser keeps these settings.")
})

onPress(byId("renew"), byId("link-problem"), async () => {
  const { settingsUrl } = await request("POST", "/link")
  token = settingsUrl.split("#")[1]
  if (!isGuest) await remember({ token })
  byId("link").textContent = settingsUrl
  byId("link-place").hidden = false
  say("Earlier links work no more.")
})

onPress(byId("leave"), byId("leave-problem"), async () => {
  if (!confirm("Leave all projects? Your browsers and webhooks are deleted here at once.")) return
  await request("DELETE", "")
  if (!isGuest) {
    await (await subscription())?.unsubscribe()
    await forget()
  }
  nothing("You have left. Nothing is kept of you here.")
})

const start = async () => {
  if (token === undefined)
    return nothing(
      "This browser is subscribed to nothing. Open a project’s link, or your own link from another browser."
    )
  try {
    await refresh()
    await reconcile()
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 401) return nothing(error.message)
    if (!isGuest) await forget()
    return nothing("This link works no more: it was replaced by a newer one, or its subscriber has left.")
  }
}

await start()
