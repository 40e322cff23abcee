/**
 * Counts page views and events of a website from its server. No dependencies; Node 18 or later.
 *
 *     import { Beacon, fromRequest } from "./beacon.mjs"
 *
 *     const beacon = new Beacon({ secret: process.env.SITE_SECRET, onError: console.warn })
 *
 *     beacon.pageview(fromRequest(request))
 *     beacon.event("signup", { ...fromRequest(request), props: { plan: "pro" } })
 *
 *     await beacon.close() // before process.exit(), which waits for nothing
 *
 * Recording takes no time and throws nothing. Events are sent half a second later, up to 100 at once, and sent again
 * until the server has them: every event has an id, so that it counts once however often it is sent, and the time at
 * which it was recorded. Of a server that stays away the queue keeps the latest 10,000 events; `dropped` counts those
 * given up. A process that has nothing else left to do waits until they are out, for a server that stays away at most
 * 15 seconds.
 */
import { randomUUID } from "node:crypto"
import process from "node:process"

/** The server that this file came from. */
const servedFrom = "http://127.0.0.1:8080"

/** The most events of one request. */
const batchMax = 100

const attemptMillis = 10_000

/** The pause after the first failure; it doubles with every further one. */
const pauseMinMillis = 500
const pauseMaxMillis = 30_000

/** The server knows an id for 24 hours: an event sent again later could count twice. */
const giveUpMillis = 23 * 60 * 60 * 1000

/**
 * @typedef {object} Event
 * @property {string} url absolute, or a path that starts with `/`
 * @property {string} [ip] the visitor's address: hashed, never stored
 * @property {string} [userAgent] the visitor's
 * @property {string} [referrer]
 * @property {string} [country] ISO-3166 alpha-2
 * @property {string} [visitor] a stable key of your own, already anonymous, instead of `ip` and `userAgent`
 * @property {Record<string, string | number | boolean>} [props]
 * @property {string | number | Date} [timestamp] when it happened; default: now
 * @property {string} [id] your own, of at most 64 characters; the same id counts once in 24 hours
 */

/** Events that will not be counted, and why. */
export class BeaconError extends Error {
  name = "BeaconError"
  /** @param {string} message @param {ReadonlyArray<unknown>} events */
  constructor(message, events) {
    super(message)
    this.events = events
  }
}

export class Beacon {
  /** The number of events given up: the queue was full, or the server away for too long. */
  dropped = 0

  #endpoint
  #secret
  #onError
  #delayMillis
  #queueMax
  #closeMillis

  /** Events recorded and not yet on their way, the oldest first: `{ json, recordedMillis }`. */
  #waiting = []
  /** Events on their way, until the server has answered. */
  #batch = []
  /** The promise of the delivery that is going on. */
  #delivery
  #failures = 0
  #lastFailure = "no answer so far"
  #isFull = false
  #abort = new AbortController()
  #wake = () => {}
  #isClosed = false
  #beforeExit = () => void this.#finish(this.#closeMillis)

  /**
   * @param {object} options
   * @param {string} options.secret the site's secret (`ssk_…`)
   * @param {string} [options.url] the server's address
   * @param {(error: BeaconError) => void} [options.onError] told of events that will not be counted
   * @param {number} [options.delayMillis] how long an event waits for others to share its request
   * @param {number} [options.queueMax] events kept while the server is away
   * @param {number} [options.closeMillis] how long `close` tries to deliver what waits
   */
  constructor(options = {}) {
    const { delayMillis = 500, queueMax = 10_000, closeMillis = 5_000, onError, secret, url } = options
    this.#endpoint = `${String(url ?? servedFrom).replace(/\/+$/, "")}/api/v1/collect`
    this.#secret = secret
    this.#onError = onError
    this.#delayMillis = delayMillis
    this.#queueMax = queueMax
    this.#closeMillis = closeMillis
    process.on("beforeExit", this.#beforeExit)
  }

  /** @param {Event} event */
  pageview(event) {
    this.#record("pageview", event)
  }

  /** @param {string} name @param {Event} event */
  event(name, event) {
    this.#record(name, event)
  }

  /** Sends what is recorded now. Resolves to whether nothing waits any more; never rejects. */
  async flush(withinMillis = this.#closeMillis) {
    // A pause after failures is for the server's sake; a caller that waits may ask it once more.
    this.#failures = 0
    this.#wake()
    let timer
    const deadline = new Promise((resolve) => {
      timer = setTimeout(resolve, withinMillis)
    })
    await Promise.race([this.#delivery, deadline])
    clearTimeout(timer)
    return this.#delivery === undefined
  }

  /** Sends what waits, for at most `closeMillis`, and gives up the rest. Nothing can be recorded afterwards. */
  async close() {
    this.#isClosed = true
    process.off("beforeExit", this.#beforeExit)
    await this.#finish(this.#closeMillis)
  }

  #record(name, event) {
    try {
      if (this.#isClosed) throw new Error("recorded after close()")
      const { id, timestamp, ...rest } = { ...event, name }
      // As text: later changes by the caller must not change the event.
      const json = JSON.stringify({ ...rest, id: id ?? randomUUID(), timestamp: timestamp ?? Date.now() })
      this.#waiting.push({ json, recordedMillis: performance.now() })
      if (this.#waiting.length > this.#queueMax) this.#dropOldest()
      this.#delivery ??= this.#deliver()
      if (this.#waiting.length >= batchMax && this.#failures === 0) this.#wake()
    } catch (error) {
      this.#report(`not recorded: ${error?.message ?? error}`, [event])
    }
  }

  /** An outage is reported once; the count tells the rest. */
  #dropOldest() {
    const oldest = this.#waiting.shift()
    this.dropped++
    if (!this.#isFull) this.#refused(`the queue is full (${this.#lastFailure})`, [oldest])
    this.#isFull = true
  }

  /** Goes on until nothing waits. */
  async #deliver() {
    await this.#pause(this.#delayMillis)
    for (;;) {
      if (this.#batch.length === 0) this.#batch = this.#waiting.splice(0, batchMax)
      if (this.#batch.length === 0) break
      const waitMillis = await this.#attempt()
      if (waitMillis === undefined || this.#batch.length === 0) continue
      // A random part of the pause: servers that failed together must not come back together.
      const pauseMillis = Math.random() * Math.min(pauseMaxMillis, pauseMinMillis * 2 ** this.#failures)
      this.#failures++
      await this.#pause(waitMillis + pauseMillis)
    }
    this.#delivery = undefined
  }

  /** A pause does not keep the process alive. */
  #pause(millis) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis).unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Sends the batch. Answers how long to wait before it is sent again, undefined when it is settled. */
  async #attempt() {
    const tooOld = performance.now() - giveUpMillis
    const before = this.#batch.length
    this.#batch = this.#batch.filter(({ recordedMillis }) => recordedMillis > tooOld)
    this.dropped += before - this.#batch.length
    if (this.#batch.length === 0) return undefined

    this.#abort = new AbortController()
    const timer = setTimeout(() => this.#abort.abort(new Error("no answer in time")), attemptMillis)
    try {
      const response = await fetch(this.#endpoint, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#secret}`, "content-type": "application/json" },
        body: `[${this.#batch.map(({ json }) => json).join(",")}]`,
        // Following a redirect would make a GET of it, and hand the secret to wherever it leads.
        redirect: "manual",
        signal: this.#abort.signal
      })
      const text = await response.text()
      if (response.status === 429 || response.status >= 500) {
        this.#lastFailure = `the server answered ${response.status}`
        return (Number(response.headers.get("retry-after")) || 0) * 1000
      }
      return this.#settle(response.status, text)
    } catch (error) {
      this.#lastFailure = error.cause?.message || error.cause?.code || error.message
      return 0
    } finally {
      clearTimeout(timer)
    }
  }

  /** Takes the server's word for each event: counted, counted before, a bot's, or wrong in some field. */
  #settle(status, text) {
    this.#failures = 0
    this.#isFull = false
    const sent = this.#batch
    this.#batch = []
    const answer = parsed(text)
    if (!Array.isArray(answer?.results)) {
      if (status !== 202) this.#refused(`${status}: ${answer?.error ?? "not a collect endpoint"}`, sent)
      return undefined
    }
    for (const { index, error } of answer.results) {
      const event = sent[index]
      if (event === undefined || error === undefined) continue
      if (error.endsWith("in the future")) this.#batch.push(withoutTimestamp(event))
      else if (error.endsWith("send it again")) this.#batch.push(event)
      else this.#refused(error, [event])
    }
    return this.#batch.length === 0 ? undefined : 0
  }

  /** Delivers until the deadline, then gives up what is left. */
  async #finish(withinMillis) {
    if (this.#delivery === undefined || (await this.flush(withinMillis))) return
    const left = [...this.#batch, ...this.#waiting]
    this.#batch = []
    this.#waiting = []
    this.dropped += left.length
    this.#abort.abort(new Error("closed"))
    this.#wake()
    this.#refused(`not delivered in time (${this.#lastFailure})`, left)
  }

  #refused(message, events) {
    this.#report(
      message,
      events.map(({ json }) => JSON.parse(json))
    )
  }

  #report(message, events) {
    try {
      this.#onError?.(new BeaconError(message, events))
    } catch {
      // The receiver of errors has failed itself, and there is no other.
    }
  }
}

/** This machine's clock is ahead of the server's, whose own will do. */
const withoutTimestamp = ({ json, recordedMillis }) => {
  const { timestamp: _, ...rest } = JSON.parse(json)
  return { json: JSON.stringify(rest), recordedMillis }
}

const parsed = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A request's facts about a visit: address and page, the visitor's IP address and browser. For requests of Node's http
 * and of frameworks built on it (Express, `request.raw` of Fastify, `ctx.req` of Koa). Behind a proxy the IP address is
 * the proxy's, unless the framework knows better (`trust proxy` of Express): pass your own then, as in `{
 * ...fromRequest(request), ip }`.
 *
 * @param {import("node:http").IncomingMessage} request
 */
export const fromRequest = (request) => {
  const { host, referer, "user-agent": userAgent } = request?.headers ?? {}
  const scheme = request?.protocol ?? (request?.socket?.encrypted ? "https" : "http")
  const path = request?.originalUrl ?? request?.url
  const address = request?.ip ?? request?.socket?.remoteAddress
  return {
    url: (host === undefined ? path : `${scheme}://${host}${path}`)?.slice(0, 4096),
    // Without the zone of a link-local address: it names an interface of this machine.
    ip: address?.replace(/%.*$/, ""),
    userAgent: userAgent?.slice(0, 1024),
    referrer: referer?.slice(0, 4096)
  }
}
