import type { Priority } from "#schemas/notify/SendTerms.ts"

/** A browser's subscription, as a channel's row holds it; `readSubscription` checks one. */
export interface PushTarget {
  /** https, at most 2,048 characters; its path is a capability, so it is shown to no one */
  readonly endpoint: string
  /** the browser's P-256 point, 65 bytes in base64url without padding */
  readonly p256dh: string
  /** 16 bytes in base64url without padding */
  readonly auth: string
}

/** A generic webhook, as a channel's row holds it. */
export interface WebhookTarget {
  /** https, at most 2,048 characters; may hold a secret */
  readonly url: string
  /** `whsec_` and 24 to 64 bytes in base64 */
  readonly secret: string
}

/** A webhook of a chat, as a channel's row holds it: its address is all that sending takes. */
export interface ChatTarget {
  /** https, at most 2,048 characters; its path is a capability */
  readonly url: string
}

/** A chat of Telegram with the bot, as a channel's row holds it. */
export interface TelegramTarget {
  /** at most 52 bits, negative of groups */
  readonly chatId: number
  readonly isGroup: boolean
}

/** Kinds of channels, each with its target. `Kinds.ts` has what is particular to each. */
export interface Targets {
  readonly push: PushTarget
  readonly webhook: WebhookTarget
  /** Slack, and services that take its webhooks, such as Mattermost and Rocket.Chat */
  readonly slack: ChatTarget
  readonly discord: ChatTarget
  readonly telegram: TelegramTarget
}

export type ChannelKind = keyof Targets

/** A channel of one of these kinds, with its target. */
export type ChannelOf<K extends ChannelKind = ChannelKind> = {
  readonly [Each in K]: { readonly kind: Each; readonly target: Targets[Each] }
}[K]

/** One delivery's message, the same for every kind of channel. */
export interface Notice {
  readonly deliveryId: string
  readonly messageId: string
  readonly project: { readonly slug: string; readonly name: string }
  /** 1 to 100 characters: the heading where there is no title */
  readonly app: string
  /** 1 to 200 characters */
  readonly title?: string
  /** 1 to 4,000 characters, without the paperclip */
  readonly message: string
  /** http or https, at most 2,048 characters */
  readonly url?: string
  /** The message's page; every message has one. */
  readonly pageUrl: string
  /** The page shows a body or attachments, so that it is told as `viewUrl` and a click leads there. */
  readonly hasView: boolean
  /** the subscriber's own: shown to no one else */
  readonly settingsUrl: string
  readonly priority: Priority
  /** The message has attachments, which a paperclip before its text tells. */
  readonly hasPaperclip: boolean
  /** The notice is of several messages; its text tells the first ones, its page has all. */
  readonly digest?: DigestContent
  readonly createdAtMillis: number
  /** 72 h after the message was accepted, or sent again by hand */
  readonly expiresAtMillis: number
}

export interface DigestContent {
  readonly count: number
  /** the first ones, in their order */
  readonly items: ReadonlyArray<DigestItem>
}

/** A message of a digest. */
export type DigestItem = Pick<
  Notice,
  | "app"
  | "hasPaperclip"
  | "hasView"
  | "message"
  | "messageId"
  | "pageUrl"
  | "priority"
  | "project"
  | "title"
  | "url"
>

/** Changes that an earlier answer asked for; each is made once a delivery. */
export interface Adjustments {
  /** after `Smaller`: 2,000 bytes at most */
  readonly isSmaller?: boolean
  /** after `NewSignature` */
  readonly hasNewSignature?: boolean
  /** after `Plain`: no marks, no buttons */
  readonly isPlain?: boolean
}

export interface ChannelRequest {
  readonly url: string
  readonly method: "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** `body` is JSON. */
export const jsonRequest = (url: string, body: Uint8Array): ChannelRequest => ({
  url,
  method: "POST",
  headers: { "content-type": "application/json" },
  body
})

/** The answer to such a request, as egress tells it. */
export interface ChannelAnswer {
  readonly status: number
  /** names are in lower case */
  readonly header: (name: string) => string | undefined
  readonly body?: Uint8Array
}

/**
 * Consequences of an answer. `error` is for the message's owner: it never has an address, a token or text that a stranger
 * wrote.
 *
 * `Delivered`: the service has it; it may ask for a pause before the next one. `Gone`: the channel is no more, and what waits for it is dropped. `Again`: later, not
 * before `afterMillis` where the service asked for a pause (1 ms to 24 h), else when the lane's own delay is over. `Smaller`,
 * `NewSignature` and `Plain`: once more, at once, with that adjustment. `Moved`: to the chat's new id. `Dead`: never again by itself, the lane goes on.
 * `isOwnFault`: the operator's settings are refused, which says nothing of the channel.
 */
export type Verdict =
  | { readonly _tag: "Delivered"; readonly afterMillis?: number }
  | { readonly _tag: "Gone"; readonly error: string }
  | {
      readonly _tag: "Again"
      readonly afterMillis?: number
      readonly isOwnFault?: boolean
      readonly error: string
    }
  | { readonly _tag: "Smaller"; readonly error: string }
  | { readonly _tag: "NewSignature"; readonly error: string }
  | { readonly _tag: "Plain"; readonly error: string }
  | { readonly _tag: "Moved"; readonly chatId: number; readonly error: string }
  | { readonly _tag: "Dead"; readonly error: string }

/** Bytes of a request's content after an answer 413. */
export const smallBytes = 2_000
