import { newId } from "#src/infra/crypto/Tokens.ts"
import { sandboxLimits as limits } from "./Limits.ts"
import type { Entry } from "./Inbox.ts"
import { headersOf, type Judgement, type Peer } from "./Peer.ts"
import { PushReceiver, pointOf } from "./PushReceiver.ts"
import {
  bad,
  Fields,
  jsonOf,
  type SandboxAnswer,
  SandboxRefusal,
  type SandboxRequest
} from "./SandboxRequest.ts"
import { type Claims, VapidCheck } from "./VapidCheck.ts"

/** RFC 8291, section 4: more need not be taken. */
const messageBytesMax = 4_096
/** A longer TTL is lowered to it, and the answer says so. */
const ttlSecondsMax = 28 * 24 * 3_600
const urgencies = ["very-low", "low", "normal", "high"]
const states = ["active", "expired"] as const

interface Subscription {
  readonly id: string
  readonly receiver: PushReceiver
  /** senders with another key are refused; null: each may send */
  readonly applicationServerKey: string | null
  state: (typeof states)[number]
  isOnline: boolean
  accepted: number
  /** by topic, or by number where it has none; the oldest first */
  readonly waiting: Map<string, Waiting>
}

interface Waiting {
  readonly entry: Entry
  readonly untilMillis: number
}

/** The checked parts of a push. */
interface Push {
  readonly claims: Claims
  readonly ttlSeconds: number
  readonly topic: string | undefined
  readonly payload: unknown
}

/** A push service with its browsers, which hold the keys. Source: RFC 8030, 8188, 8291 and 8292. */
export class PushService implements Peer {
  readonly kind = "push"
  readonly #origin: () => string
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #vapid = new VapidCheck()

  constructor(origin: () => string) {
    this.#origin = origin
  }

  has(id: string): boolean {
    return this.#subscriptions.has(id)
  }

  /** One, in the form of `PushSubscription.toJSON()` with an `id`; a list of them where `count` was asked for. */
  subscribe(fields: Fields): unknown {
    const key = fields.text("applicationServerKey")
    const bound = key === undefined ? undefined : pointOf(key)
    if (key !== undefined && bound === undefined)
      throw bad("applicationServerKey: expected a point of P-256, 65 bytes in base64url")
    const isOnline = fields.flag("online") ?? true
    const count = fields.integer("count", 1, limits.channelsAtOnce)
    if (this.#subscriptions.size + (count ?? 1) > limits.channels)
      throw new SandboxRefusal(429, `at most ${limits.channels} subscriptions`)
    const made = Array.from({ length: count ?? 1 }, () => {
      const subscription: Subscription = {
        id: newId("psh"),
        receiver: new PushReceiver(),
        applicationServerKey: bound?.toString("base64url") ?? null,
        state: "active",
        isOnline,
        accepted: 0,
        waiting: new Map()
      }
      this.#subscriptions.set(subscription.id, subscription)
      const { auth, p256dh } = subscription.receiver
      const endpoint = this.#endpointOf(subscription.id)
      return { id: subscription.id, endpoint, expirationTime: null, keys: { p256dh, auth } }
    })
    return count === undefined ? made[0] : { subscriptions: made }
  }

  list(after: number, limit: number): ReadonlyArray<unknown> {
    return [...this.#subscriptions.values()].slice(after, after + limit).map((one) => this.#shown(one))
  }

  get size(): number {
    return this.#subscriptions.size
  }

  show(id: string): unknown {
    return this.#shown(this.#find(id))
  }

  /** Expired ones answer 410 from now on; an offline one has its messages wait. */
  change(id: string, fields: Fields, nowMillis: number): unknown {
    const subscription = this.#find(id)
    const state = fields.oneOf("state", states)
    const isOnline = fields.flag("online")
    if (state !== undefined) subscription.state = state
    if (state === "expired") end(subscription, "expired")
    if (isOnline !== undefined) subscription.isOnline = isOnline
    if (isOnline === true) {
      drop(subscription, nowMillis)
      end(subscription, "delivered")
    }
    return this.#shown(subscription)
  }

  remove(id: string): void {
    end(this.#find(id), "expired")
    this.#subscriptions.delete(id)
  }

  clear(): void {
    this.#subscriptions.clear()
  }

  /** Marks what waited longer than its TTL. */
  expire(nowMillis: number): void {
    for (const subscription of this.#subscriptions.values()) drop(subscription, nowMillis)
  }

  /** The sender takes a message back that still waits, at the address that it was answered. */
  cancel(seq: number): boolean {
    for (const { waiting } of this.#subscriptions.values())
      for (const [name, { entry }] of waiting)
        if (entry.seq === seq) {
          entry.state = "cancelled"
          return waiting.delete(name)
        }
    return false
  }

  judge(id: string, request: SandboxRequest): Judgement {
    const headers = headersOf(request, ["ttl", "urgency", "topic", "content-encoding", "content-type"])
    const subscription = this.#subscriptions.get(id)
    const base = { channel: subscription?.id ?? null, headers, signed: null }
    try {
      const push = this.#read(subscription, request)
      const { aud, exp, sub } = push.claims
      return {
        ...base,
        messageId: push.topic,
        vapid: { aud, exp, sub },
        payload: push.payload,
        outcome: taken(subscription, push, request.nowMillis, this.#origin())
      }
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error
      const messageId = headers["topic"]
      return { ...base, messageId, vapid: null, payload: null, outcome: { _tag: "Refused", refusal: error } }
    }
  }

  /** In the order in which push services look: address, sender, headers, size, content. */
  #read(subscription: Subscription | undefined, { body, headers, nowMillis }: SandboxRequest): Push {
    if (subscription === undefined) throw new SandboxRefusal(404, "there is no such subscription")
    if (subscription.state === "expired") throw new SandboxRefusal(410, "the subscription has expired")
    const claims = this.#vapid.claimsOf(headers.authorization, {
      origin: this.#origin(),
      boundTo: subscription.applicationServerKey ?? undefined,
      nowMillis
    })
    const ttl = String(headers["ttl"] ?? "")
    if (!/^\d{1,10}$/u.test(ttl)) throw bad("ttl: expected a whole number of seconds")
    const urgency = headers["urgency"]
    if (urgency !== undefined && !urgencies.includes(String(urgency)))
      throw bad(`urgency: expected one of ${urgencies.join(", ")}`)
    const topic = headers["topic"] === undefined ? undefined : String(headers["topic"])
    if (topic !== undefined && !/^[\w-]{1,32}$/u.test(topic))
      throw bad("topic: expected 1 to 32 characters of base64url")
    if (body.length > messageBytesMax) throw new SandboxRefusal(413, `body: at most ${messageBytesMax} bytes`)
    const payload = payloadOf(subscription, body, headers["content-encoding"])
    return { claims, ttlSeconds: Math.min(Number(ttl), ttlSecondsMax), topic, payload }
  }

  #find(id: string): Subscription {
    const subscription = this.#subscriptions.get(id)
    if (subscription === undefined) throw new SandboxRefusal(404, "there is no such subscription")
    return subscription
  }

  #endpointOf(id: string): string {
    return `${this.#origin()}/push/${id}`
  }

  #shown({ accepted, applicationServerKey, id, isOnline, state, waiting }: Subscription): unknown {
    const counts = { accepted, waiting: waiting.size }
    return { id, endpoint: this.#endpointOf(id), state, online: isOnline, applicationServerKey, ...counts }
  }
}

/** A push without a body is a mere knock, which RFC 8030 allows. */
const payloadOf = ({ receiver }: Subscription, body: Buffer, encoding: string | undefined): unknown => {
  if (body.length === 0) return null
  if (encoding !== "aes128gcm") throw new SandboxRefusal(415, "content-encoding: expected aes128gcm")
  const decrypted = receiver.decrypt(body)
  if (decrypted._tag === "Failure") throw bad(`body: cannot be decrypted: ${decrypted.failure}`)
  return jsonOf(decrypted.success) ?? decrypted.success.toString()
}

const taken = (
  subscription: Subscription | undefined,
  { topic, ttlSeconds }: Push,
  nowMillis: number,
  origin: string
): Judgement["outcome"] => {
  if (subscription === undefined) throw new SandboxRefusal(404, "there is no such subscription")
  const { isOnline, waiting } = subscription
  const isHeld = !isOnline && ttlSeconds > 0
  if (isHeld && waiting.size >= limits.waitingPerChannel && !waiting.has(topicName(topic)))
    throw new SandboxRefusal(429, `at most ${limits.waitingPerChannel} messages wait`, {
      headers: { "retry-after": "1" }
    })
  const accept = (entry: Entry): SandboxAnswer => {
    subscription.accepted++
    if (isHeld) hold(subscription, topic, { entry, untilMillis: nowMillis + ttlSeconds * 1_000 })
    const location = `${origin}/push/messages/${entry.seq}`
    return { status: 201, headers: { location, ttl: String(ttlSeconds) } }
  }
  return {
    _tag: "Taken",
    status: 201,
    state: isOnline ? "delivered" : isHeld ? "waiting" : "expired",
    accept
  }
}

const topicName = (topic: string | undefined): string => `topic ${topic ?? ""}`

/** A message replaces the one of its topic that still waits: RFC 8030, section 5.4. */
const hold = ({ waiting }: Subscription, topic: string | undefined, message: Waiting): void => {
  const name = topic === undefined ? `seq ${message.entry.seq}` : topicName(topic)
  const before = waiting.get(name)
  if (before !== undefined) before.entry.state = "replaced"
  waiting.delete(name)
  waiting.set(name, message)
}

const drop = ({ waiting }: Subscription, nowMillis: number): void => {
  for (const [name, { entry, untilMillis }] of waiting)
    if (untilMillis <= nowMillis) {
      entry.state = "expired"
      waiting.delete(name)
    }
}

const end = ({ waiting }: Subscription, state: "delivered" | "expired"): void => {
  for (const { entry } of waiting.values()) entry.state = state
  waiting.clear()
}
