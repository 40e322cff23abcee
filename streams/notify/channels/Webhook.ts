import { createHmac } from "node:crypto"
import type { Priority } from "#schemas/notify/SendTerms.ts"
import {
  type Adjustments,
  type ChannelRequest,
  type DigestContent,
  type DigestItem,
  type Notice,
  smallBytes,
  type WebhookTarget
} from "./Channel.ts"
import type { Confirmation, Kind } from "./Kind.ts"
import { cutForJson, fittedJson, type Form } from "./JsonFit.ts"
import { textOf } from "./NoticeText.ts"

/** The body of a message at a generic webhook. It is the same in every attempt of a delivery, unless it has to be smaller. */
export interface WebhookMessage {
  readonly id: string
  readonly project: { readonly slug: string; readonly name: string }
  readonly app: string
  readonly title?: string
  readonly message: string
  readonly url?: string
  /** the message's page, where it has more than the text that is here */
  readonly viewUrl?: string
  readonly priority: Priority
}

const secretPrefix = "whsec_"
const secretBytesMin = 24
const secretBytesMax = 64

/** The text of a webhook's secret. @param random 24 to 64 random bytes */
export const webhookSecret = (random: Uint8Array): string => {
  if (random.length < secretBytesMin || random.length > secretBytesMax)
    throw new RangeError(`a webhook's secret has ${secretBytesMin} to ${secretBytesMax} bytes`)
  return secretPrefix + Buffer.from(random).toString("base64")
}

/** Bytes of a title that gives way to the text. */
const titleBytesMin = 200

const formsOf = (notice: Notice): readonly [Form<WebhookMessage>, ...ReadonlyArray<Form<WebhookMessage>>] => {
  const { app, hasView, messageId, pageUrl, priority, project, title, url } = notice
  const always = { id: messageId, project: { slug: project.slug, name: project.name }, app, priority }
  const titled = (text: string | undefined) => (text === undefined ? {} : { title: text })
  const short = title === undefined ? undefined : cutForJson(title, titleBytesMin)
  return [
    (message, isCut) => ({
      ...always,
      ...titled(title),
      message,
      ...(url === undefined ? {} : { url }),
      ...(hasView || isCut ? { viewUrl: pageUrl } : {})
    }),
    // The page has the address of the message too, so a long one can be left out.
    (message) => ({ ...always, ...titled(title), message, viewUrl: pageUrl }),
    (message) => ({ ...always, ...titled(short), message, viewUrl: pageUrl })
  ]
}

/** `{type, timestamp, data}`, as Standard Webhooks has it; `timestamp` is that of the event. */
const eventOf = (type: string, atMillis: number, data: string): Buffer =>
  Buffer.from(`{"type":"${type}","timestamp":"${new Date(atMillis).toISOString()}","data":${data}}`)

/** `v1` of Standard Webhooks: what the receiver computes, too. @param timestamp epoch seconds of the attempt */
export const webhookSignature = (
  secret: string,
  { id, timestamp }: { readonly id: string; readonly timestamp: string },
  body: Uint8Array
): string => {
  const key = Buffer.from(secret.slice(secretPrefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`
}

const signed = (
  { secret, url }: WebhookTarget,
  id: string,
  body: Buffer,
  nowMillis: number
): ChannelRequest => {
  const timestamp = String(Math.floor(nowMillis / 1_000))
  return {
    url,
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": webhookSignature(secret, { id, timestamp }, body)
    },
    body
  }
}

export interface WebhookSender {
  readonly nowMillis: number
  readonly adjustments?: Adjustments
}

/** The body of a digest. */
interface WebhookDigest {
  readonly id: string
  readonly count: number
  /** the first ones, in their order */
  readonly messages: ReadonlyArray<WebhookMessage>
  /** the digest's page, which has all of them */
  readonly viewUrl: string
}

/** Bytes of a message's text in a digest that has to be small. */
const itemBytesMin = 150

const digestItemOf = (item: DigestItem, isSmall: boolean): WebhookMessage => ({
  id: item.messageId,
  project: item.project,
  app: isSmall ? cutForJson(item.app, itemBytesMin) : item.app,
  ...(item.title === undefined || isSmall ? {} : { title: item.title }),
  message: isSmall ? cutForJson(textOf(item), itemBytesMin) : textOf(item),
  ...(item.url === undefined || isSmall ? {} : { url: item.url }),
  ...(item.hasView && !isSmall ? { viewUrl: item.pageUrl } : {}),
  priority: item.priority
})

/** All of what it tells; or less of it, or its address alone, so that it fits. */
const digestData = (
  { messageId: id, pageUrl: viewUrl }: Notice,
  digest: DigestContent,
  maxBytes: number
): string => {
  const { count, items } = digest
  const dataOf = (messages: ReadonlyArray<WebhookMessage>) =>
    JSON.stringify({ id, count, messages, viewUrl } satisfies WebhookDigest)
  const forms = [false, true].map((isSmall) => () => dataOf(items.map((item) => digestItemOf(item, isSmall))))
  for (const form of forms) {
    const data = form()
    if (Buffer.byteLength(data) <= maxBytes) return data
  }
  return dataOf([])
}

/** A notice as `message.created`, or `digest.created`. Every attempt of a delivery has one `webhook-id`. Source: Standard Webhooks 1.0. */
export const webhookRequest = (
  target: WebhookTarget,
  notice: Notice,
  { adjustments = {}, nowMillis }: WebhookSender
): ChannelRequest => {
  const { digest } = notice
  const type = digest === undefined ? "message.created" : "digest.created"
  const around = eventOf(type, notice.createdAtMillis, "").length
  const maxBytes = adjustments.isSmaller === true ? smallBytes - around : Number.POSITIVE_INFINITY
  const data =
    digest === undefined
      ? fittedJson(textOf(notice), maxBytes, formsOf(notice)).toString()
      : digestData(notice, digest, maxBytes)
  return signed(target, notice.deliveryId, eventOf(type, notice.createdAtMillis, data), nowMillis)
}

/** Asks the people behind a webhook to confirm it, as `channel.confirmation`: they open the address. */
export const webhookConfirmation = (
  target: WebhookTarget,
  { channelId, url }: Confirmation,
  nowMillis: number
): ChannelRequest =>
  signed(
    target,
    channelId,
    eventOf("channel.confirmation", nowMillis, JSON.stringify({ confirmUrl: url })),
    nowMillis
  )

/** Programs that take Standard Webhooks. Their own words may tell their address, so no reason is read. */
export const webhook: Kind<WebhookTarget> = {
  service: "the webhook",
  gone: [410],
  hostOf: ({ url }) => new URL(url).host,
  gate: "webhook",
  request: webhookRequest,
  confirmation: webhookConfirmation
}
