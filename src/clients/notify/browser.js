// Shared by the pages of subscribers: their state, requests, and the abilities of this browser.

const stateName = "signalbox"
const statePath = "/n/me/state"

/** The worker has no localStorage, and pages over http have no caches: the state is in both. */
export const recall = () => {
  try {
    return JSON.parse(localStorage.getItem(stateName) ?? "{}")
  } catch {
    return {}
  }
}

/** {token, channel, endpoint, key}: the subscriber of this browser, and its channel there. */
export const remember = async (change) => {
  const state = { ...recall(), ...change }
  localStorage.setItem(stateName, JSON.stringify(state))
  if ("caches" in window) {
    const cache = await caches.open(stateName)
    await cache.put(statePath, Response.json(state))
  }
}

export const forget = async () => {
  localStorage.removeItem(stateName)
  if ("caches" in window) await caches.delete(stateName)
}

export class Refused extends Error {
  constructor(status, text) {
    super(text)
    this.status = status
  }
}

/** Asks the server; answers its JSON, throws its words. */
export const ask = async (method, path, { token, json } = {}) => {
  const response = await fetch(`/api/v1${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(json === undefined ? {} : { "content-type": "application/json" })
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) })
  })
  const body = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }))
  if (!response.ok) throw new Refused(response.status, body.error)
  return body
}

const isApple =
  /iPhone|iPad|iPod/.test(navigator.userAgent) ||
  (navigator.platform === "MacIntel" && navigator.maxTouchPoints > 1)

const isInstalled = navigator.standalone === true || matchMedia("(display-mode: standalone)").matches

/** On an iPhone or iPad only an app on the home screen gets notifications. */
export const isAppleTab = isApple && !isInstalled

/** Why this browser can show no notifications; undefined: it can. */
export const pushProblem = () => {
  if (!window.isSecureContext)
    return "This page came over http. Browsers allow notifications over https only; ask for the address with https."
  if (isAppleTab)
    return "On an iPhone or iPad this takes an app: in Safari, press Share, then “Add to Home Screen”, and open it from there."
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window))
    return "This browser has no web push. Firefox, Chrome, Edge and Safari have it, outside of private windows."
  if (Notification.permission === "denied")
    return "Notifications of this site are blocked. Allow them in the browser’s settings of this site, then load this page again."
  return undefined
}

/** Such as "Firefox on Linux", by which people tell their browsers apart. */
export const browserName = () => {
  const { userAgent } = navigator
  const of = (names) => names.find(([part]) => userAgent.includes(part))?.[1]
  const browser = of([
    ["Edg", "Edge"],
    ["OPR", "Opera"],
    ["SamsungBrowser", "Samsung Internet"],
    ["Firefox", "Firefox"],
    ["FxiOS", "Firefox"],
    ["Chrome", "Chrome"],
    ["CriOS", "Chrome"],
    ["Safari", "Safari"]
  ])
  const system = of([
    ["Android", "Android"],
    ["iPhone", "iPhone"],
    ["iPad", "iPad"],
    ["Windows", "Windows"],
    ["Mac OS", "macOS"],
    ["CrOS", "ChromeOS"],
    ["Linux", "Linux"]
  ])
  return [browser ?? "A browser", system].filter(Boolean).join(" on ")
}

const options = (key) => ({ userVisibleOnly: true, applicationServerKey: key })

/** Of this browser, after a click: asks for permission, and subscribes with the server's key. Throws what to tell. */
export const subscribe = async (key) => {
  const permission = await Notification.requestPermission()
  if (permission !== "granted")
    throw new Error(
      pushProblem() ?? "The browser was not allowed to show notifications. Press again to be asked again."
    )
  await navigator.serviceWorker.register("/n/sw.js", { scope: "/n/" })
  const { pushManager } = await navigator.serviceWorker.ready
  try {
    return await pushManager.subscribe(options(key))
  } catch (error) {
    // It has one with another server's key, from an earlier installation.
    if (error.name !== "InvalidStateError") throw noService(error)
    const former = await pushManager.getSubscription()
    await former?.unsubscribe()
    return await pushManager.subscribe(options(key)).catch((again) => {
      throw noService(again)
    })
  }
}

const noService = (error) =>
  new Error(
    `This browser reaches no push service (${error.name}). Private windows have none, some browsers have it turned off, and some networks block it.`
  )

/** The subscription that there is, without asking anybody. */
export const subscription = async () => {
  if (!("serviceWorker" in navigator && "PushManager" in window)) return null
  const registration = await navigator.serviceWorker.getRegistration("/n/")
  return (await registration?.pushManager.getSubscription()) ?? null
}

/** As the API takes it. */
export const pushOf = (subscribed) => {
  const { endpoint, keys } = subscribed.toJSON()
  return { endpoint, keys, name: browserName() }
}

/** An element with properties (`data-…` and `aria-…` are attributes) and children. Text stays text. */
export const element = (name, properties, ...children) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(properties ?? {}))
    if (/^(data|aria)-/.test(key)) made.setAttribute(key, value)
    else made[key] = value
  made.append(...children.flat().filter((child) => child !== undefined))
  return made
}

/** A name that others gave, on one line and in its own direction. */
export const named = (text) => element("bdi", {}, text.replace(/[\u202a-\u202e]/g, ""))

/** The form of a webhook, as the API takes it. */
export const webhookGiven = () => {
  const kind = byId("webhook-kind").value
  return { url: byId("url").value.trim(), ...(kind === "" ? {} : { kind }) }
}

/** Chats have none. */
export const showSecret = (secret) => {
  byId("secret").textContent = secret ?? ""
  byId("secret-place").hidden = secret === undefined
}

export const byId = (id) => document.getElementById(id)

/** Runs what a press of a button begins: one at a time, with its fault in words beside it. */
export const onPress = (control, problem, run) => {
  const isForm = control instanceof HTMLFormElement
  control.addEventListener(isForm ? "submit" : "click", async (event) => {
    event.preventDefault()
    const button = isForm ? control.querySelector("button") : control
    button.disabled = true
    problem.textContent = ""
    try {
      await run()
    } catch (error) {
      problem.textContent = error.message
    } finally {
      button.disabled = false
    }
  })
}
