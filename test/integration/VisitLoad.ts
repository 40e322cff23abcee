import { Agent } from "node:http"
import type { TestSite } from "#test/harness/ApiClient.ts"
import { addressOf, type Outcome, sendBeacon } from "./BeaconLoad.ts"
import { pingName } from "./StoredEvents.ts"

/**
 * Hard cases of visits, against a server that dies at any instant: events of up to seven days ago, of visitors that are
 * known, and engage pings, also about page views that were sent before a kill, and from another address. One load for
 * all of a test's lives; paths and pings are kept with their answers, as in `BeaconLoad`.
 */
export class VisitLoad {
  /** the status of each: 202 must be stored exactly once, anything else at most once */
  readonly outcomes = new Map<string, Outcome>()
  readonly #url: string
  readonly #site: TestSite
  readonly #random: () => number
  /** page views that pings are about, each with the address of its visitor */
  readonly #views: Array<{ readonly pv: string; readonly address: string }> = []
  /** late events without an answer: sent again with their ids until they have one */
  #unanswered: Array<LateEvent> = []
  #sequence = 0

  constructor(url: string, site: TestSite, random: () => number) {
    this.#url = url
    this.#site = site
    this.#random = random
  }

  /** Starts loops that go on until they are stopped. */
  start(): { readonly stop: () => Promise<void> } {
    const agent = new Agent({ keepAlive: true })
    const state = { isRunning: true }
    const loop = async (step: () => Promise<boolean>): Promise<void> => {
      while (state.isRunning) {
        // A dead server refuses at once; a busy loop would starve the one that is starting.
        if (!(await step())) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    const loops = [
      ...Array.from({ length: 6 }, () => loop(() => this.#viewAndPing(agent))),
      ...Array.from({ length: 3 }, () => loop(() => this.#sendLate(this.#makeLate(1 + this.#below(10)))))
    ]
    return {
      stop: async () => {
        state.isRunning = false
        await Promise.all(loops)
        agent.destroy()
      }
    }
  }

  /** Sends unanswered events again: each is then stored, now or by the try before. */
  async settle(): Promise<void> {
    while (this.#unanswered.length > 0) {
      const again = this.#unanswered.splice(0, 100)
      if (!(await this.#sendLate(again))) throw new Error("the server does not answer")
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  /** A page view, and pings about it and an older one: the first goes without waiting for the page view's answer. */
  async #viewAndPing(agent: Agent): Promise<boolean> {
    const sequence = this.#sequence++
    const address = addressOf(0x1_0000 + (sequence % 500))
    const pv = `pv${sequence}`
    const path = `/view/${sequence}`
    const event = { s: this.#site.id, k: "pageview", u: `https://example.com${path}`, pv }
    const view = sendBeacon(this.#url, agent, event, address)
    this.#views.push({ pv, address })
    const answered = await Promise.all([
      view.then((outcome) => this.#note(path, outcome)),
      this.#ping(agent, pv, address),
      this.#pingOlder(agent)
    ])
    return answered.every((isAnswered) => isAnswered)
  }

  #pingOlder(agent: Agent): Promise<boolean> {
    const older = this.#views[this.#below(this.#views.length)]
    if (older === undefined) return Promise.resolve(true)
    return this.#ping(agent, older.pv, this.#random() < 0.2 ? addressOf(this.#below(500)) : older.address)
  }

  async #ping(agent: Agent, pv: string, address: string): Promise<boolean> {
    // Never the same time twice, so that each ping can be told in the store.
    const engagedMillis = 1_000 + this.#sequence++
    const event = { s: this.#site.id, k: "engage", u: "https://example.com/", pv, e: engagedMillis }
    return this.#note(pingName(pv, engagedMillis), await sendBeacon(this.#url, agent, event, address))
  }

  #note(what: string, outcome: Outcome): boolean {
    this.outcomes.set(what, outcome)
    return outcome !== undefined
  }

  /** Events of forty visitors, on any of eight days, often close to others of theirs. */
  #makeLate(count: number): ReadonlyArray<LateEvent> {
    return Array.from({ length: count }, () => {
      const id = `late${this.#sequence++}`
      const daysAgo = this.#random() < 0.3 ? 0 : this.#random() * 6.9
      return {
        id,
        url: `/${id}`,
        visitor: `visitor${this.#below(40)}`,
        name: this.#random() < 0.8 ? "pageview" : "goal",
        timestamp: Math.round(Date.now() - 1_000 - daysAgo * 86_400_000)
      }
    })
  }

  async #sendLate(events: ReadonlyArray<LateEvent>): Promise<boolean> {
    for (const { url } of events) if (!this.outcomes.has(url)) this.outcomes.set(url, undefined)
    try {
      const response = await fetch(`${this.#url}/api/v1/collect`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#site.secret}`, "content-type": "application/json" },
        body: JSON.stringify(events),
        signal: AbortSignal.timeout(30_000)
      })
      const { results } = (await response.json()) as Collected
      for (const { error, index } of results) {
        if (error !== undefined) throw new Error(`refused: ${error}`)
        const event = events[index]
        // Stored by this try, or a duplicate of one that was stored before.
        if (event !== undefined) this.outcomes.set(event.url, 202)
      }
      return true
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("refused")) throw error
      // The connection broke: the server was killed.
      this.#unanswered.push(...events)
      return false
    }
  }
}

interface LateEvent {
  readonly id: string
  readonly url: string
  readonly visitor: string
  readonly name: string
  readonly timestamp: number
}

interface Collected {
  readonly results: ReadonlyArray<{ readonly index: number; readonly error?: string }>
}
