import { createHmac, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"

/**
 * Addresses that bounces of one delivery come back to: `b+TOKEN@MAIL_BOUNCE_DOMAIN`. None but this installation can make the
 * token of a delivery. It has no capital letters, since some servers write local parts in small ones. Source: contract/mail#bounces.
 */
export class ReturnPaths extends Context.Service<
  ReturnPaths,
  {
    /** undefined: this server has no domain of return paths */
    readonly addressOf: (deliveryId: string) => string | undefined
    /** undefined: the token is forged, or cut */
    readonly deliveryOf: (token: string) => string | undefined
    /** the token of a return path of this server, which may be forged; undefined: the address is none */
    readonly tokenOf: (address: string) => string | undefined
  }
>()("signalbox/mail/ReturnPaths") {
  static readonly layer = Layer.effect(
    ReturnPaths,
    Effect.gen(function* () {
      const { bounceDomain } = (yield* AppConfig).mailDomains
      const secret = yield* (yield* Secrets).of("mail-return-path")
      const signatureOf = (digits: string): Buffer =>
        createHmac("sha256", secret).update(digits).digest().subarray(0, signatureBytes)
      return ReturnPaths.of({
        addressOf: (deliveryId) => {
          if (bounceDomain === undefined) return undefined
          const digits = shortOf(deliveryId.slice(idPrefix.length))
          return `${localPrefix}${digits}${signatureOf(digits).toString("hex")}@${bounceDomain}`
        },
        deliveryOf: (token) => {
          const [, digits = "", signature = ""] = form.exec(token.toLowerCase()) ?? []
          if (digits === "" || !timingSafeEqual(Buffer.from(signature, "hex"), signatureOf(digits)))
            return undefined
          return `${idPrefix}${longOf(digits)}`
        },
        tokenOf: (address) => {
          const at = address.lastIndexOf("@")
          const isOurs = address.slice(at + 1).toLowerCase() === bounceDomain
          const local = address.slice(0, at).toLowerCase()
          return isOurs && local.startsWith(localPrefix) ? local.slice(localPrefix.length) : undefined
        }
      })
    })
  )
}

/** Of deliveries. */
const idPrefix = "mdl_"
const localPrefix = "b+"

/** 96 bits. With them a local part has 52 of at most 64 characters. */
const signatureBytes = 12

/** The delivery's id in base 36, and its signature in hexadecimal. */
const form = /^([0-9a-z]{26})([0-9a-f]{24})$/

const idDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** 22 digits of base 62 in 26 of base 36. */
const shortOf = (text: string): string => {
  let value = 0n
  for (const digit of text) value = value * 62n + BigInt(idDigits.indexOf(digit))
  return value.toString(36).padStart(26, "0")
}

const longOf = (text: string): string => {
  let value = 0n
  for (const digit of text) value = value * 36n + BigInt(Number.parseInt(digit, 36))
  let id = ""
  for (let place = 0; place < 22; place++) {
    id = (idDigits[Number(value % 62n)] ?? "") + id
    value /= 62n
  }
  return id
}
