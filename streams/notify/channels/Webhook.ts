import { createHmac } from "node:crypto"
import type { Priority } from "#schemas/notify/SendTerms.ts"
import {
  type Adjustments,
  type ChannelRequest,
  type Notice,
  smallBytes,
  textOf,
  type WebhookTarget
} from "./Channel.ts"
import { cutForJson, fittedJson, type Form } from "./JsonFit.ts"

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

/** A notice as `message.created`. Every attempt of a delivery has one `webhook-id`. Source: Standard Webhooks 1.0. */
export const webhookRequest = (
  target: WebhookTarget,
  notice: Notice,
  { adjustments = {}, nowMillis }: WebhookSender
): ChannelRequest => {
  const type = "message.created"
  const around = eventOf(type, notice.createdAtMillis, "").length
  const maxBytes = adjustments.isSmaller === true ? smallBytes - around : Number.POSITIVE_INFINITY
  const data = fittedJson(textOf(notice), maxBytes, formsOf(notice)).toString()
  return signed(target, notice.deliveryId, eventOf(type, notice.createdAtMillis, data), nowMillis)
}

/** Asks the people behind a webhook to confirm it, as `channel.confirmation`: they open the address. */
export const webhookConfirmation = (
  target: WebhookTarget,
  channel: { readonly id: string; readonly confirmUrl: string },
  nowMillis: number
): ChannelRequest =>
  signed(
    target,
    channel.id,
    eventOf("channel.confirmation", nowMillis, JSON.stringify({ confirmUrl: channel.confirmUrl })),
    nowMillis
  )
