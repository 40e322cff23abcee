// The worker behind the pages of subscribers: shows what is pushed, and leads clicks to where they belong.

const settings = "/n/me"
const icon = "/n/icon-192.png"

self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))

/** The payload is `PushPayload` of streams/notify/channels/PushRequest.ts. */
const read = (data) => {
  try {
    const payload = data.json()
    if (typeof payload.title === "string" && typeof payload.text === "string") return payload
  } catch {
    // Every push has to be shown: a browser ends the subscription otherwise.
  }
  return { title: "A notification", text: "It could not be read." }
}

const shown = ({ at, open, page, tag, text, title, url }) =>
  self.registration.showNotification(title, {
    body: text,
    icon,
    badge: icon,
    data: { open, page, url },
    ...(tag === undefined ? {} : { tag }),
    ...(Number.isFinite(at) ? { timestamp: at } : {}),
    actions: [
      ...(url === undefined ? [] : [{ action: "url", title: "Open the link" }]),
      ...(page === undefined ? [] : [{ action: "page", title: "Read all of it" }])
    ]
  })

self.addEventListener("push", (event) => event.waitUntil(shown(read(event.data))))

/** The address that a click means: http and https alone. */
const targetOf = ({ action, notification }) => {
  const { open, page, url } = notification.data ?? {}
  const wanted = action === "url" ? url : action === "page" ? page : open
  const target = URL.canParse(wanted ?? settings, self.location.origin)
    ? new URL(wanted ?? settings, self.location.origin)
    : undefined
  return target !== undefined && /^https?:$/.test(target.protocol)
    ? target.href
    : new URL(settings, self.location.origin).href
}

const withoutFragment = (address) => address.split("#", 1)[0]

const opened = async (target) => {
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true })
  const there = windows.find(({ url }) => withoutFragment(url) === withoutFragment(target))
  return there === undefined ? self.clients.openWindow(target) : there.focus()
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close()
  event.waitUntil(opened(targetOf(event)))
})

/** The subscriber of this browser, as browser.js keeps it. */
const recall = async () => {
  const cache = await self.caches.open("signalbox")
  const kept = await cache.match("/n/me/state")
  return kept === undefined ? {} : await kept.json()
}

/** The browser has ended a subscription: the server is told of the next one. A page makes up for it where this fails. */
const followed = async ({ newSubscription, oldSubscription }) => {
  const { channel, key, token } = await recall()
  if (channel === undefined) return
  const subscription =
    newSubscription ??
    (await self.registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: oldSubscription?.options?.applicationServerKey ?? key
    }))
  const { endpoint, keys } = subscription.toJSON()
  const response = await fetch(`/api/v1/subscriber/channels/${channel}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ push: { endpoint, keys } })
  })
  if (!response.ok) throw new Error(`the server answered ${response.status}`)
}

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(followed(event)))
