import { ECDH } from "node:crypto"
import { Predicate, Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import type { ChannelKind, PushTarget } from "./Channel.ts"
import { curveName, pointBytes } from "./PushEncryption.ts"

const addressCharactersMax = 2_048
const authBytes = 16

export interface AddressOptions {
  /** Whether `http:` is good enough for a host: those that EGRESS_ALLOW names, and the sandbox. */
  readonly isHttpAllowed?: (address: URL) => boolean
}

/**
 * The normal form of an address that requests are sent to. Whether its host may be reached is egress's to say.
 *
 * @param field names the value in a fault
 */
export const readAddress = (
  value: unknown,
  field: string,
  { isHttpAllowed = () => false }: AddressOptions = {}
): Result.Result<string, FieldFault> => {
  const expected = `expected an https address of at most ${addressCharactersMax} characters`
  if (value === undefined || value === null) return Result.fail({ field, text: "is required" })
  if (typeof value !== "string" || value.length > addressCharactersMax || !URL.canParse(value))
    return Result.fail({ field, text: expected })
  const address = new URL(value)
  const isSecure = address.protocol === "https:" || (address.protocol === "http:" && isHttpAllowed(address))
  // Percent signs of other characters make it longer.
  if (!isSecure || address.href.length > addressCharactersMax) return Result.fail({ field, text: expected })
  if (address.username !== "" || address.password !== "")
    return Result.fail({ field, text: "expected an address without a name and password" })
  address.hash = ""
  return Result.succeed(address.href)
}

export type WebhookKind = Exclude<ChannelKind, "push" | "telegram">

/** The chat whose webhook an address is, by its host; undefined: it is none that is known. */
const chatAt = (address: string): "slack" | "discord" | undefined => {
  const { hostname, pathname } = new URL(address)
  if (/^hooks\.slack(?:-gov)?\.com$/u.test(hostname)) return "slack"
  const isDiscord = /^(?:(?:ptb|canary)\.)?discord(?:app)?\.com$/u.test(hostname)
  return isDiscord && /^\/api\/(?:v\d+\/)?webhooks\//u.test(pathname) ? "discord" : undefined
}

const chatNames = { slack: "Slack", discord: "Discord" } as const

/**
 * The kind of a webhook: the one that is asked for, else that of its host, else `webhook`.
 *
 * @param address in its normal form
 */
export const readWebhookKind = (
  address: string,
  asked: WebhookKind | undefined
): Result.Result<WebhookKind, FieldFault> => {
  const known = chatAt(address)
  if (known === undefined) return Result.succeed(asked ?? "webhook")
  return asked === undefined || asked === known
    ? Result.succeed(known)
    : Result.fail({ field: "kind", text: `the address is a webhook of ${chatNames[known]}` })
}

/** Base64 of either alphabet, as libraries of browsers write it; undefined if it is none. */
const bytesOf = (value: unknown, maxBytes: number): Buffer | undefined => {
  if (typeof value !== "string" || value.length > 4 * Math.ceil(maxBytes / 3)) return undefined
  return /^[\w+/-]+={0,2}$/u.test(value) ? Buffer.from(value, "base64") : undefined
}

/** 65 bytes that are an uncompressed point of P-256. Another "point" would tell strangers about the private key. */
const isPoint = (bytes: Buffer): boolean => {
  if (bytes.length !== pointBytes || bytes[0] !== 4) return false
  try {
    ECDH.convertKey(bytes, curveName)
    return true
  } catch {
    // It is not on the curve.
    return false
  }
}

/**
 * A browser's subscription (`PushSubscription.toJSON()`): `{endpoint, keys: {p256dh, auth}}`. Other fields are ignored. The
 * keys come out as base64url without padding.
 */
export const readSubscription = (
  value: unknown,
  options: AddressOptions = {}
): Result.Result<PushTarget, FieldFault> => {
  const subscription = Predicate.isReadonlyObject(value) ? value : {}
  const endpoint = readAddress(subscription["endpoint"], "endpoint", options)
  if (Result.isFailure(endpoint)) return Result.fail(endpoint.failure)
  const { keys } = subscription
  if (!Predicate.isReadonlyObject(keys))
    return Result.fail({
      field: "keys",
      text: keys === undefined || keys === null ? "is required" : "expected object"
    })
  const p256dh = bytesOf(keys["p256dh"], pointBytes)
  if (p256dh === undefined || !isPoint(p256dh))
    return Result.fail({
      field: "keys.p256dh",
      text: `expected a point of P-256: ${pointBytes} bytes in base64url`
    })
  const auth = bytesOf(keys["auth"], authBytes)
  if (auth?.length !== authBytes)
    return Result.fail({ field: "keys.auth", text: `expected ${authBytes} bytes in base64url` })
  return Result.succeed({
    endpoint: endpoint.success,
    p256dh: p256dh.toString("base64url"),
    auth: auth.toString("base64url")
  })
}
