import { Effect } from "effect"
import { AppConfig } from "#src/Config.ts"
import { MailDomains } from "../domains/MailDomains.ts"
import { bodyHashOf, signedHead } from "../signing/Dkim.ts"
import { UnsubscribeTokens } from "../unsubscribe/UnsubscribeTokens.ts"
import type { DeliveryRow } from "./DeliveryRecords.ts"

/** Hashes of the messages that were signed last: the copies of a message have one body, and so have all attempts. */
class BodyHashes {
  private readonly hashes = new Map<string, string>()
  private readonly most = 1_000

  of(messageId: string, raw: Buffer): string {
    const hash = this.hashes.get(messageId) ?? bodyHashOf(raw)
    // The one that was used last is at the end.
    this.hashes.delete(messageId)
    this.hashes.set(messageId, hash)
    const [oldest] = this.hashes.keys()
    if (oldest !== undefined && this.hashes.size > this.most) this.hashes.delete(oldest)
    return hash
  }
}

/**
 * Makes the headers of one recipient's copy: the way to opt out of bulk mail, and the signature. Source: RFC 8058,
 * RFC 6376.
 */
export const make = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const domains = yield* MailDomains
  const { pathOf } = yield* UnsubscribeTokens
  const hashes = new BodyHashes()
  return (row: DeliveryRow, owner: string, message: Uint8Array): Effect.Effect<Buffer> => {
    const raw = Buffer.from(message.buffer, message.byteOffset, message.length)
    const keys = domains.signingKeys(owner, row.from_address.slice(row.from_address.lastIndexOf("@") + 1))
    // One click is believed of signed mail alone (RFC 8058, 4), and over https.
    const isOneClick = row.is_bulk && keys.length > 0 && baseUrl?.startsWith("https:") === true
    const url = isOneClick ? `${baseUrl}${pathOf(row.id)}` : row.unsubscribe_url
    const extra = [
      ...(url === null ? [] : [["List-Unsubscribe", `<${url}>`] as const]),
      ...(isOneClick ? [["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"] as const] : [])
    ]
    const bodyHash = keys.length === 0 ? {} : { bodyHash: hashes.of(row.message_id, raw) }
    return Effect.promise(() => signedHead({ raw, extra, keys, ...bodyHash }))
  }
})
