/**
 * The script that a page loads to be counted: `<script defer data-site="st_…" src="{base_url}/a.js"></script>`.
 * `data-api` names another endpoint, such as a path of the site itself that its proxy passes on to `/api/event`.
 *
 * It sends `POST /api/event` page views, custom events (`beacon("signup", { props: { plan: "pro" } })`) and how long
 * each page was visible. It keeps nothing in the browser, waits for nothing and never throws into the page. Calls made
 * before it has loaded are counted too where the page has this stub:
 *
 *     <script>window.beacon=window.beacon||function(){(beacon.q=beacon.q||[]).push(arguments)}</script>
 *
 * This file is the source; `a.min.js` beside it is served: test/clients/PageScript.test.ts holds the two equal and says
 * how to write it anew. Syntax: ES2018 at most. Source: contract/analytics#browser-events.
 */

// A second copy of the tag counts nothing: it may be in a template and in the page, or the page was put together anew.
if (!(window.beacon && window.beacon.on)) {
  /** The action, with its errors kept from the page: frozen globals, a CSP, props that are no JSON. */
  const quietly = (action) => (first, second) => {
    try {
      return action(first, second)
      // oxlint-disable-next-line no-unused-vars -- a catch without a name is younger than ES2018
    } catch (error) {
      return undefined
    }
  }

  const script = document.currentScript || document.querySelector("script[data-site]")
  /** `data-api`, as the page would read a link, else the path on the server that the script came from. */
  const endpoint = quietly(
    () => new URL(script.dataset.api || new URL("/api/event", script.src), location.href).href
  )()
  const timeZone = quietly(() => Intl.DateTimeFormat().resolvedOptions().timeZone)()

  /** Events from before the first page view: if the page never becomes visible, they do not count either. */
  const early = (window.beacon && window.beacon.q) || []
  /** Random id of the page view that visible time is added to; none before the first. */
  let view
  /** A page view is to be counted, as soon as the page is visible: it may be prerendered, or in a background tab. */
  let isDue = true
  let path = location.pathname
  /** where the visitor came from: to this page, and once the path has changed, from the page before */
  let referrer = document.referrer
  let address
  /** The start of visible time not yet sent, by the monotonic clock; 0 while the page is hidden. */
  let visibleSince = 0

  const sendBeacon = quietly((body) => navigator.sendBeacon(endpoint, body))

  /**
   * Answers whether it went out. Text needs no preflight, and the endpoint needs no cookies. A refusal is not sent
   * again by another way: an event that did arrive would count twice.
   */
  const sendFetch = quietly((body) =>
    fetch(endpoint, { method: "POST", body, keepalive: true, credentials: "omit" }).catch(() => false)
  )

  /**
   * By fetch first: blocklists forbid all beacons to other sites, and a forbidden one says that it went out. Where a
   * fetch does not outlive its page the beacon does.
   */
  const send = (hit) => {
    hit.s = script.dataset.site
    const body = JSON.stringify(hit)
    if (quietly(() => "keepalive" in Request.prototype)()) return sendFetch(body) || sendBeacon(body)
    return sendBeacon(body) || sendFetch(body)
  }

  /** Hits can overtake each other, and the first of a visit says where it came from: so all of them know. */
  const sendHit = (hit) => {
    hit.u = location.href.split("#")[0]
    hit.r = referrer
    hit.tz = timeZone
    send(hit)
    return hit.u
  }

  const sendEvent = (name, options) => {
    sendHit({ k: "event", n: name, p: options && options.props })
  }

  /** Sends the visible time since the last time, and measures on while the page is visible. */
  const sendEngaged = (isVisible) => {
    const now = performance.now()
    const millis = Math.round(now - visibleSince)
    if (view && visibleSince && millis) send({ k: "engage", pv: view, e: millis })
    visibleSince = isVisible ? now : 0
  }

  /** Looks whether the page is visible, and counts it if that is due. */
  const look = quietly(() => {
    sendEngaged(!document.hidden)
    if (!isDue || document.hidden) return
    isDue = false
    // 36 bits: a ping finds its page view by site, visitor and day first, so two alike are of no consequence.
    view = Math.random().toString(36).slice(2, 9)
    address = sendHit({ k: "pageview", pv: view })
    early.splice(0).forEach((call) => sendEvent(call[0], call[1]))
  })

  /** Navigation within the page: another path is another page, another query or hash is not. */
  const navigated = quietly(() => {
    if (path === location.pathname) return
    path = location.pathname
    referrer = address || referrer
    isDue = true
    look()
  })

  const beacon = quietly((name, options) => {
    if (view) sendEvent(name, options)
    else early.push([name, options])
  })
  beacon.on = true
  window.beacon = beacon
  look()

  document.addEventListener("visibilitychange", look)
  addEventListener(
    "pagehide",
    quietly(() => sendEngaged(false))
  )
  // Back from the back/forward cache: nothing is loaded, and yet the page is seen again.
  addEventListener(
    "pageshow",
    quietly((event) => {
      if (!event.persisted) return
      isDue = true
      look()
    })
  )
  addEventListener("popstate", navigated)
  for (const name of ["pushState", "replaceState"]) {
    const original = history[name]
    history[name] = function () {
      const result = original.apply(this, arguments)
      navigated()
      return result
    }
  }
}
