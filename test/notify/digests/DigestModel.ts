import { naiveDueOf } from "./NaiveDue.ts"
import { settingsOf, type SubscriberSettings } from "./DigestStage.ts"

export type Choice = "inherit" | "instant" | "hourly" | "daily" | "muted"

/** A subscriber as the model knows them. */
export interface ModelSubscriber {
  settings: SubscriberSettings
  /** by project; absent: they have not subscribed to it */
  readonly choices: Map<string, Choice>
  /** whether each is on */
  readonly channels: Map<string, boolean>
}

interface Held {
  readonly message: string
  readonly project: string
  readonly subscriber: string
  readonly channel: string
  readonly isHigh: boolean
  dueMillis: number
}

/** A message on a channel as it went: alone, or in the digest of an instant. */
export type Fate = "alone" | "at once" | "dropped" | `digest ${string}`

const keyOf = (message: string, channel: string): string => `${message} ${channel}`

/** The model: what is held for whom until which minute, by a look at the clock on the wall, and what became of all messages. */
export class DigestModel {
  readonly subscribers = new Map<string, ModelSubscriber>()
  readonly fates = new Map<string, Fate>()
  private held: Array<Held> = []

  private dueOf(subscriber: ModelSubscriber, project: string, isHigh: boolean, nowMillis: number) {
    const { settings } = subscriber
    if (isHigh && settings.highPasses) return undefined
    const choice = subscriber.choices.get(project) ?? "inherit"
    const delivery = choice === "inherit" || choice === "muted" ? settings.delivery : choice
    return naiveDueOf(settingsOf({ ...settings, delivery }), nowMillis)
  }

  /** Answers for how many subscribers it is, and for how many of them it is held. */
  accept(message: string, project: string, isHigh: boolean, nowMillis: number): readonly [number, number] {
    let [recipients, queued] = [0, 0]
    for (const [id, subscriber] of this.subscribers) {
      const choice = subscriber.choices.get(project)
      const channels = [...subscriber.channels].filter(([, isOn]) => isOn)
      if (choice === undefined || choice === "muted" || channels.length === 0) continue
      recipients++
      const dueMillis = this.dueOf(subscriber, project, isHigh, nowMillis)
      if (dueMillis !== undefined) queued++
      for (const [channel] of channels)
        if (dueMillis === undefined) this.fates.set(keyOf(message, channel), "at once")
        else this.held.push({ message, project, subscriber: id, channel, isHigh, dueMillis })
    }
    return [recipients, queued]
  }

  private drop(isDropped: (held: Held) => boolean): void {
    for (const { channel, message } of this.held.filter(isDropped))
      this.fates.set(keyOf(message, channel), "dropped")
    this.held = this.held.filter((held) => !isDropped(held))
  }

  /** Settings of a subscriber have changed. */
  settle(id: string, nowMillis: number): void {
    const subscriber = this.subscribers.get(id)
    if (subscriber === undefined) return
    this.drop(
      (held) => held.subscriber === id && (subscriber.choices.get(held.project) ?? "muted") === "muted"
    )
    for (const held of this.held)
      if (held.subscriber === id && held.dueMillis > nowMillis)
        held.dueMillis = this.dueOf(subscriber, held.project, held.isHigh, nowMillis) ?? nowMillis
  }

  turnOff(channel: string): void {
    this.drop((held) => held.channel === channel)
  }

  delete(message: string): void {
    this.held = this.held.filter((held) => held.message !== message)
    for (const key of this.fates.keys()) if (key.startsWith(`${message} `)) this.fates.delete(key)
  }

  /** All that is due goes. */
  close(nowMillis: number): void {
    const due = this.held.filter(({ dueMillis }) => dueMillis <= nowMillis)
    this.held = this.held.filter(({ dueMillis }) => dueMillis > nowMillis)
    for (const [group, items] of Map.groupBy(
      due,
      ({ channel, dueMillis, subscriber }) => `${subscriber} ${dueMillis} ${channel}`
    )) {
      const [subscriber, dueMillis] = group.split(" ")
      for (const { channel, message } of items)
        this.fates.set(
          keyOf(message, channel),
          items.length === 1 ? "alone" : `digest ${subscriber} ${dueMillis}`
        )
    }
  }

  /** All that is known of each message on each channel. */
  get outcomes(): ReadonlyMap<string, string> {
    const held = this.held.map(
      ({ channel, dueMillis, message }) =>
        [keyOf(message, channel), `held until ${new Date(dueMillis).toISOString()}`] as const
    )
    return new Map([...this.fates, ...held])
  }
}
