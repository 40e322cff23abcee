import { Effect, type Scope } from "effect"
import type { PushPayload } from "#streams/notify/channels/PushRequest.ts"
import * as ChannelsSandbox from "#src/notify/sandbox/ChannelsSandbox.ts"
import type { Entry } from "#src/notify/sandbox/Inbox.ts"

/** `PushSubscription.toJSON()` with the sandbox's id for it. */
export interface SandboxSubscription {
  readonly id: string
  readonly endpoint: string
  readonly expirationTime: null
  readonly keys: { readonly p256dh: string; readonly auth: string }
}

export interface SandboxWebhook {
  readonly id: string
  readonly url: string
  readonly secret: string | null
}

/** A webhook of a chat. */
export interface SandboxChat {
  readonly id: string
  readonly url: string
}

export interface FaultOrder {
  /** an address or id; absent: all */
  readonly target?: string
  readonly status?: number
  readonly retryAfter?: string
  readonly body?: string
  readonly delayMillis?: number
  readonly cut?: "before" | "after"
  readonly times?: number
  readonly always?: boolean
}

export interface InboxQuery {
  readonly after?: number
  readonly limit?: number
  readonly channel?: string
  readonly accepted?: boolean
  readonly waitMillis?: number
}

interface InboxPage {
  readonly received: number
  readonly accepted: number
  readonly repeated: number
  readonly forgotten: number
  readonly next: number
  readonly entries: ReadonlyArray<Entry>
}

/** The sandbox of channels over its HTTP interface. A refusal is an Error with the status and the text. */
export class SandboxClient {
  readonly origin: string

  constructor(origin: string) {
    this.origin = origin
  }

  async ask<A = undefined>(method: string, path: string, json?: unknown): Promise<A> {
    const response = await fetch(`${this.origin}${path}`, {
      method,
      body: json === undefined ? null : JSON.stringify(json)
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${response.status} ${text}`)
    return (text === "" ? undefined : JSON.parse(text)) as A
  }

  /** A browser's subscription; `applicationServerKey` is the server's VAPID key, `online` false has messages wait. */
  subscribe(
    fields: { readonly applicationServerKey?: string; readonly online?: boolean } = {}
  ): Promise<SandboxSubscription> {
    return this.ask("POST", "/push/subscriptions", fields)
  }

  /** Many at once, at most 1,000. */
  async subscribeMany(count: number, fields: object = {}): Promise<ReadonlyArray<SandboxSubscription>> {
    const made = await this.ask<{ readonly subscriptions: ReadonlyArray<SandboxSubscription> }>(
      "POST",
      "/push/subscriptions",
      { ...fields, count }
    )
    return made.subscriptions
  }

  changeSubscription(
    id: string,
    fields: { readonly state?: "active" | "expired"; readonly online?: boolean }
  ) {
    return this.ask<object>("PATCH", `/push/subscriptions/${id}`, fields)
  }

  webhook(fields: { readonly secret?: string } = {}): Promise<SandboxWebhook> {
    return this.ask("POST", "/webhooks", fields)
  }

  /** The secret that a server showed for it, or its end. */
  changeWebhook(id: string, fields: { readonly secret?: string; readonly state?: "active" | "gone" }) {
    return this.ask<object>("PATCH", `/webhooks/${id}`, fields)
  }

  chat(kind: "slack" | "discord"): Promise<SandboxChat> {
    return this.ask("POST", `/${kind}`)
  }

  /** Its end: `archived` is a channel of Slack's. */
  changeChat(
    kind: "slack" | "discord",
    id: string,
    fields: { readonly state: "active" | "gone" | "archived" }
  ) {
    return this.ask<object>("PATCH", `/${kind}/${id}`, fields)
  }

  order(fault: FaultOrder): Promise<{ readonly id: string; readonly left: number | null }> {
    return this.ask("POST", "/faults", fault)
  }

  clearFaults(): Promise<void> {
    return this.ask("DELETE", "/faults")
  }

  clearInbox(): Promise<void> {
    return this.ask("DELETE", "/inbox")
  }

  inbox(query: InboxQuery = {}): Promise<InboxPage> {
    const given = Object.entries(query).map(([name, value]) => [name, String(value)])
    return this.ask("GET", `/inbox?${new URLSearchParams(Object.fromEntries(given))}`)
  }

  /** So many accepted entries, of a channel if one is named, as soon as they are there; fails after `millis`. */
  async accepted(count: number, query: InboxQuery = {}, millis = 20_000): Promise<ReadonlyArray<Entry>> {
    const end = performance.now() + millis
    const found: Array<Entry> = []
    for (let after = query.after ?? 0; found.length < count;) {
      const waitMillis = Math.max(1, Math.min(20_000, Math.floor(end - performance.now())))
      const { entries, next } = await this.inbox({ ...query, accepted: true, after, waitMillis })
      found.push(...entries)
      after = next
      if (found.length < count && performance.now() >= end)
        throw new Error(`${found.length} of ${count} came within ${millis} ms: ${JSON.stringify(found)}`)
    }
    return found
  }
}

/** The messages of pushes. */
export const payloadsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<PushPayload> =>
  entries.map(({ payload }) => payload as PushPayload)

/** One of the test's own, on a free port; a server uses it with `notifySandbox: { origin }`. */
export const startSandbox = (
  options: ChannelsSandbox.ChannelsSandboxOptions = {}
): Effect.Effect<SandboxClient, never, Scope.Scope> =>
  Effect.map(Effect.orDie(ChannelsSandbox.start(options)), ({ origin }) => new SandboxClient(origin))
