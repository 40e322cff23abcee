import { Context, Effect, Latch, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Listener } from "#src/infra/postgres/Listener.ts"
import type { Limits } from "#src/Limits.ts"

type OnNotice = () => void

/**
 * Wakes those who wait for something, in this process and in others. A notice says that there may be news, and no more: it
 * can be lost, doubled or early, so a poll stands behind every use.
 */
export class Notices extends Context.Service<
  Notices,
  {
    /**
     * After the caller's commit: wakes subscribers of this process at once, those of others some milliseconds later. A
     * topic is up to 200 ASCII characters without spaces, such as `jobs:mail` or an id; another one is a defect.
     */
    readonly publish: (topic: string) => Effect.Effect<void>
    /** `onNotice` only notes that it was called. It is also called when notices may have been missed. */
    readonly subscribe: (topic: string, onNotice: OnNotice) => Effect.Effect<void, never, Scope.Scope>
  }
>()("signalbox/Notices") {
  static readonly layer = Layer.effect(
    Notices,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      const listener = yield* Listener
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const subscribers = new Subscribers(
        (topic, error) => void run(Effect.logError(`A notice about ${topic} was not taken`, error))
      )
      const unsent = new Unsent(limits)
      const self = newId("ntc")
      const checked = <A, R>(topic: string, use: Effect.Effect<A, never, R>) =>
        topicPattern.test(topic)
          ? use
          : Effect.die(new Error(`${JSON.stringify(topic)} is no topic of notices`))

      yield* listener.on(channel, {
        opened: () => subscribers.wakeAll(),
        heard: (payload) => {
          const [sender, ...topics] = payload.split(" ")
          if (sender === self) return
          for (const topic of topics) {
            if (topic === everyTopic) subscribers.wakeAll()
            else subscribers.wake(topic)
          }
        }
      })
      const send = (payloads: ReadonlyArray<string>) =>
        sql`SELECT pg_notify(${channel}, payload) FROM unnest(${payloads}::text[]) AS payload`
      yield* sendForEver(send, unsent, self, limits)
      yield* SampledMetrics.register([
        ["signalbox_notice_subscribers", "Subscriptions to notices", () => subscribers.count],
        ["signalbox_notices_total", "Notices published by this process", () => unsent.published]
      ])

      return Notices.of({
        publish: (topic) =>
          checked(
            topic,
            sql.afterCommit(
              Effect.sync(() => {
                unsent.add(topic)
                subscribers.wake(topic)
              })
            )
          ),
        subscribe: (topic, onNotice) =>
          checked(
            topic,
            Effect.acquireRelease(
              Effect.sync(() => subscribers.add(topic, onNotice)),
              (subscription) => Effect.sync(() => subscribers.remove(topic, subscription))
            ).pipe(Effect.asVoid)
          )
      })
    })
  ).pipe(Layer.provide(Listener.layer))
}

/** A payload is the sender and topics, with spaces between them. */
const channel = "notices"
const topicPattern = /^[A-Za-z0-9][\w:./@+-]{0,199}$/
const everyTopic = "*"

class Subscribers {
  count = 0
  private readonly byTopic = new Map<string, Set<{ readonly onNotice: OnNotice }>>()
  private readonly report: (topic: string, error: unknown) => void

  /** A subscriber that throws is reported, and takes nothing from the others. */
  constructor(report: (topic: string, error: unknown) => void) {
    this.report = report
  }

  add(topic: string, onNotice: OnNotice): { readonly onNotice: OnNotice } {
    const subscription = { onNotice }
    const others = this.byTopic.get(topic)
    if (others === undefined) this.byTopic.set(topic, new Set([subscription]))
    else others.add(subscription)
    this.count++
    return subscription
  }

  remove(topic: string, subscription: { readonly onNotice: OnNotice }): void {
    const others = this.byTopic.get(topic)
    if (others?.delete(subscription) === true) this.count--
    if (others?.size === 0) this.byTopic.delete(topic)
  }

  wake(topic: string): void {
    for (const { onNotice } of this.byTopic.get(topic) ?? []) {
      try {
        onNotice()
      } catch (error) {
        this.report(topic, error)
      }
    }
  }

  wakeAll(): void {
    for (const topic of this.byTopic.keys()) this.wake(topic)
  }
}

/** Topics that other processes have to be told, each once. */
class Unsent {
  published = 0
  /** open while there is something to send */
  readonly some = Latch.makeUnsafe()
  private topics = new Set<string>()
  private readonly most: number
  private readonly payloadBytes: number

  constructor(limits: Limits) {
    this.most = limits.noticesUnsent
    this.payloadBytes = limits.noticePayloadBytes
  }

  add(topic: string): void {
    this.published++
    this.keep(topic)
  }

  /** Too many: the others are told that anything may be news. */
  private keep(topic: string): void {
    if (this.topics.has(everyTopic)) return
    if (topic === everyTopic || this.topics.size >= this.most) this.topics = new Set([everyTopic])
    else this.topics.add(topic)
    this.some.openUnsafe()
  }

  take(): ReadonlyArray<string> {
    const taken = [...this.topics]
    this.topics.clear()
    this.some.closeUnsafe()
    return taken
  }

  putBack(topics: ReadonlyArray<string>): void {
    for (const topic of topics) this.keep(topic)
  }

  /** Payloads for NOTIFY, which takes less than 8,000 bytes. */
  payloadsOf(sender: string, topics: ReadonlyArray<string>): ReadonlyArray<string> {
    const payloads: Array<string> = []
    let payload = sender
    for (const topic of topics) {
      if (payload.length + 1 + topic.length > this.payloadBytes) {
        payloads.push(payload)
        payload = sender
      }
      payload += ` ${topic}`
    }
    if (payload !== sender) payloads.push(payload)
    return payloads
  }
}

/**
 * Statements of their own, one at a time: in the transaction that publishes, NOTIFY would make all commits of the
 * database wait for each other. Topics that cannot be sent wait for Postgres.
 */
const sendForEver = Effect.fnUntraced(function* (
  send: (payloads: ReadonlyArray<string>) => Effect.Effect<unknown, SqlError>,
  unsent: Unsent,
  self: string,
  limits: Limits
) {
  const sendNow = Effect.suspend(() => {
    const topics = unsent.take()
    if (topics.length === 0) return Effect.void
    return Effect.onError(
      Effect.timeout(send(unsent.payloadsOf(self, topics)), limits.noticeSendMillis),
      () => Effect.sync(() => unsent.putBack(topics))
    )
  })
  const later = (error: { readonly message: string }) =>
    Effect.andThen(
      Effect.logDebug("Notices wait for Postgres", error.message),
      Effect.sleep(limits.noticeRetryMillis)
    )
  yield* Effect.addFinalizer(() =>
    Effect.catch(sendNow, (error) => Effect.logDebug("Last notices were not sent", error.message))
  )
  yield* Effect.forkScoped(
    Effect.forever(
      unsent.some.await.pipe(
        Effect.andThen(Effect.sleep(limits.noticeGatherMillis)),
        Effect.andThen(Effect.catch(sendNow, later))
      )
    )
  )
})
