import { hash } from "node:crypto"
import { type Adjustments, type ChannelRequest, type Notice, type PushTarget, smallBytes } from "./Channel.ts"
import type { ChannelSender, Kind } from "./Kind.ts"
import { cutForJson, fittedJson, type Form } from "./JsonFit.ts"
import { encryptPush, type MessageRandomness, systemRandomness } from "./PushEncryption.ts"
import { headingOf, textOf } from "./NoticeText.ts"

/** All that the service worker gets. */
export interface PushPayload {
  readonly title: string
  readonly text: string
  /** the delivery's id: a repeat replaces the notification that is there */
  readonly tag: string
  /** epoch milliseconds of the message */
  readonly at: number
  /** A click opens this; absent only where no address fitted, then the worker opens the settings page. */
  readonly open?: string
  /** the message's address, for an action, where a click opens another */
  readonly url?: string
  /** the message's page, for an action, where the text was cut and a click opens another */
  readonly page?: string
}

/** Bytes of the payload. Push services take 4,096 of the encrypted body, which leaves 3,993. */
const payloadBytesMax = 3_990

/** Bytes of a title that gives way to the text. */
const titleBytesMin = 200

/** The address that a click opens, and those of the actions beside it. Source: contract/notify#subscriber-pages. */
const clickOf = (
  { hasView, pageUrl, settingsUrl, url }: Notice,
  isCut: boolean
): Pick<PushPayload, "open" | "page" | "url"> => {
  if (hasView) return { open: pageUrl, ...(url === undefined ? {} : { url }) }
  if (url !== undefined) return { open: url, ...(isCut ? { page: pageUrl } : {}) }
  return { open: isCut ? pageUrl : settingsUrl }
}

const formsOf = (notice: Notice): readonly [Form<PushPayload>, ...ReadonlyArray<Form<PushPayload>>] => {
  const heading = headingOf(notice)
  const short = cutForJson(heading, titleBytesMin)
  const always = { tag: notice.deliveryId, at: notice.createdAtMillis }
  return [
    (text, isCut) => ({ title: heading, text, ...always, ...clickOf(notice, isCut) }),
    // The page has the address of the message too, so a long one can be left out.
    (text) => ({ title: heading, text, ...always, open: notice.pageUrl }),
    (text) => ({ title: short, text, ...always, open: notice.pageUrl }),
    (text) => ({ title: short, text, ...always })
  ]
}

/** JSON of a `PushPayload` that fits, with as much of the text as there is room for. */
export const pushPayload = (notice: Notice, { isSmaller = false }: Adjustments = {}): Buffer =>
  fittedJson(textOf(notice), isSmaller ? smallBytes : payloadBytesMax, formsOf(notice))

/** RFC 8030, section 5.4: at most 32 characters of base64url. An id of a delivery is such a text. */
export const topicOf = (deliveryId: string): string =>
  /^[\w-]{1,32}$/u.test(deliveryId) ? deliveryId : hash("sha256", deliveryId, "base64url").slice(0, 32)

/** The seconds that are left of a delivery, as a push service's TTL: it may be shown that long. */
const ttlOf = (expiresAtMillis: number, nowMillis: number): number =>
  Math.max(0, Math.floor((expiresAtMillis - nowMillis) / 1_000))

export interface PushSender extends ChannelSender {
  readonly randomness?: MessageRandomness
}

/**
 * A push of this notice, encrypted for the browser and signed for its push service. Throws if the target is not as
 * `readSubscription` makes them. Source: RFC 8030, 8291 and 8292.
 */
export const pushRequest = (target: PushTarget, notice: Notice, sender: PushSender): ChannelRequest => {
  const { adjustments = {}, nowMillis, randomness = systemRandomness, vapid } = sender
  const { origin } = new URL(target.endpoint)
  return {
    url: target.endpoint,
    method: "POST",
    headers: {
      ttl: String(ttlOf(notice.expiresAtMillis, nowMillis)),
      urgency: notice.priority === "low" ? "low" : "high",
      topic: topicOf(notice.deliveryId),
      "content-type": "application/octet-stream",
      "content-encoding": "aes128gcm",
      authorization: vapid.authorization(origin, nowMillis, adjustments.hasNewSignature)
    },
    body: encryptPush(pushPayload(notice, adjustments), target, randomness)
  }
}

/** The word by which Apple's push service says why: `{"reason":"BadJwtToken"}`. */
const reasonOf = (body: string): string | undefined => /"reason"\s*:\s*"([A-Za-z]{1,40})"/u.exec(body)?.[1]

/** Browsers, by their push services. */
export const push: Kind<PushTarget> = {
  service: "the push service",
  gone: [404, 410],
  unsigned: [401, 403],
  reasonOf,
  hostOf: ({ endpoint }) => new URL(endpoint).host,
  gate: "push",
  request: pushRequest,
  confirmation: undefined
}
