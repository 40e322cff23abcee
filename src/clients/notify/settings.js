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
  subscribe,
  subscription
} from "./browser.js"

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

const projectRow = ({ delivery, description, id, name }) => {
  const isMuted = delivery === "muted"
  return element(
    "li",
    {},
    element(
      "div",
      { className: "what" },
      element("strong", {}, named(name)),
      element("span", { className: "hint" }, description === "" ? "" : named(description))
    ),
    element("span", { className: "state" }, isMuted ? "muted" : "at once"),
    element(
      "div",
      { className: "acts" },
      button(isMuted ? "Unmute" : "Mute", `${isMuted ? "Unmute" : "Mute"} ${name}`, async () => {
        await request("PUT", `/projects/${id}`, { delivery: isMuted ? "inherit" : "muted" })
        await refresh(`${name} is ${isMuted ? "on" : "muted"}.`)
      }),
      button("Leave", `Leave ${name}`, async () => {
        if (!confirm(`Leave ${name}? To come back you need its link.`)) return
        await request("DELETE", `/projects/${id}`)
        await refresh(`You have left ${name}.`)
      })
    )
  )
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
        isHere ? "this browser" : kind === "push" ? "browser" : name === "" ? "webhook" : `webhook at ${host}`
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

const list = (place, rows, none) =>
  place.replaceChildren(...(rows.length === 0 ? [element("li", { className: "hint" }, none)] : rows))

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
  byId("timezone").value = settings.timezone
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
  const timezone = byId("timezone").value.trim()
  settings = await request("PATCH", "", { ...(name === "" ? {} : { name }), timezone })
  show()
  say("Saved.")
})

onPress(byId("push"), byId("push-problem"), async () => {
  const push = pushOf(await subscribe(settings.pushKey))
  const channel = await request("POST", "/channels", { push })
  await adopt({ channel: channel.id, endpoint: push.endpoint })
  await refresh(`${browserName()} is on.`)
})

onPress(byId("webhook-form"), byId("webhook-problem"), async () => {
  const { secret } = await request("POST", "/channels", { webhook: { url: byId("url").value.trim() } })
  byId("secret").textContent = secret
  byId("secret-place").hidden = false
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

byId("zones").append(...Intl.supportedValuesOf("timeZone").map((value) => element("option", { value })))

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
