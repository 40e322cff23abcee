import { tooMany } from "./TelegramRefusal.ts"

/** Messages of a bot in a second, over all chats. Source: core.telegram.org/bots/faq#my-bot-is-hitting-limits. */
const perSecond = 30
/** Messages to one chat in a second, and those of a burst that is tolerated. */
const chatPerSecond = 1
const chatBurst = 3
/** Messages to one group in a minute. */
const groupPerMinute = 20

/** Instants of what was sent, the latest last. */
const within = (instants: Array<number>, nowMillis: number, millis: number): Array<number> => {
  while (instants[0] !== undefined && instants[0] <= nowMillis - millis) instants.shift()
  return instants
}

const secondsTo = (atMillis: number, nowMillis: number): number =>
  Math.max(1, Math.ceil((atMillis - nowMillis) / 1_000))

interface Bucket {
  tokens: number
  atMillis: number
}

/** The limits at which the Bot API answers 429. State: what was sent in the last minute. */
export class TelegramPace {
  readonly #all: Array<number> = []
  readonly #chats = new Map<number, Bucket>()
  readonly #groups = new Map<number, Array<number>>()

  /** Counts a message, or throws a refusal. */
  take(chat: number, isGroup: boolean, nowMillis: number): void {
    const all = within(this.#all, nowMillis, 1_000)
    if (all.length >= perSecond) throw tooMany(secondsTo((all[0] ?? 0) + 1_000, nowMillis))
    const bucket = this.#bucket(chat, nowMillis)
    if (bucket.tokens < 1) throw tooMany(secondsTo(nowMillis + (1 - bucket.tokens) * 1_000, nowMillis))
    const group = isGroup ? within(this.#groups.get(chat) ?? [], nowMillis, 60_000) : undefined
    if (group !== undefined && group.length >= groupPerMinute)
      throw tooMany(secondsTo((group[0] ?? 0) + 60_000, nowMillis))
    bucket.tokens--
    all.push(nowMillis)
    if (group === undefined) return
    group.push(nowMillis)
    this.#groups.set(chat, group)
  }

  clear(): void {
    this.#all.length = 0
    this.#chats.clear()
    this.#groups.clear()
  }

  #bucket(chat: number, nowMillis: number): Bucket {
    const bucket = this.#chats.get(chat) ?? { tokens: chatBurst, atMillis: nowMillis }
    const gained = (chatPerSecond * Math.max(0, nowMillis - bucket.atMillis)) / 1_000
    bucket.tokens = Math.min(chatBurst, bucket.tokens + gained)
    bucket.atMillis = nowMillis
    this.#chats.set(chat, bucket)
    return bucket
  }
}
