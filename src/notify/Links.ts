import { createHmac } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const tokenDigits = 40

/** The last 40 base62 digits of 256 bits: 238 of them. */
const base62 = (bytes: Buffer): string => {
  let rest = BigInt(`0x${bytes.toString("hex")}`)
  let text = ""
  while (text.length < tokenDigits) {
    text = digits.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

/** A token of a link and the SHA-256 by which it is found: no row has the token itself. */
export interface LinkToken {
  readonly token: string
  readonly hash: Buffer
}

/**
 * Links that open something to those who have them. Their tokens follow from what they open and a secret of this server.
 * Source: contract/notify#message-pages.
 */
export class Links extends Context.Service<
  Links,
  {
    readonly message: (messageId: string) => LinkToken
    readonly digest: (digestId: string) => LinkToken
    /** `generation`: a later one makes the earlier links dead */
    readonly join: (projectId: string, generation: number) => LinkToken
  }
>()("signalbox/notify/Links") {
  static readonly layer = Layer.effect(
    Links,
    Effect.gen(function* () {
      const secret = yield* (yield* Secrets).of("notify-links")
      const linkOf = (text: string): LinkToken => {
        const token = base62(createHmac("sha256", secret).update(text).digest())
        return { token, hash: hashOf(token) }
      }
      return Links.of({
        message: (id) => linkOf(`message ${id}`),
        digest: (id) => linkOf(`digest ${id}`),
        join: (id, generation) => linkOf(`join ${id} ${generation}`)
      })
    })
  )
}
