import { createHmac, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { Secrets } from "#src/infra/secrets/Secrets.ts"

/** 144 bits, 24 characters. */
const signatureBytes = 18

/** The delivery's id, and its signature in base64url. */
const form = /^([a-z]{2,8}_[0-9A-Za-z]{22})([\w-]{24})$/

/** Tokens of unsubscribe links: none but this installation can make the one of a delivery, and no row has it. */
export class UnsubscribeTokens extends Context.Service<
  UnsubscribeTokens,
  {
    /** the path of a delivery's link, without the server's URL */
    readonly pathOf: (deliveryId: string) => string
    /** undefined: the token is forged, or cut */
    readonly deliveryOf: (token: string) => string | undefined
  }
>()("signalbox/mail/UnsubscribeTokens") {
  static readonly layer = Layer.effect(
    UnsubscribeTokens,
    Effect.gen(function* () {
      const secret = yield* (yield* Secrets).of("mail-unsubscribe")
      const signatureOf = (id: string): Buffer =>
        createHmac("sha256", secret).update(id).digest().subarray(0, signatureBytes)
      return UnsubscribeTokens.of({
        pathOf: (id) => `${unsubscribePath}/${id}${signatureOf(id).toString("base64url")}`,
        deliveryOf: (token) => {
          const [, id = "", signature = ""] = form.exec(token) ?? []
          if (id === "") return undefined
          return timingSafeEqual(Buffer.from(signature, "base64url"), signatureOf(id)) ? id : undefined
        }
      })
    })
  )
}

export const unsubscribePath = "/unsubscribe"
