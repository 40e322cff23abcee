import { Effect, Semaphore } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { type JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import type { Limits } from "#src/Limits.ts"
import { MailDomains } from "../domains/MailDomains.ts"
import { bodyHashOf, signedHead } from "../signing/Dkim.ts"
import { UnsubscribeTokens } from "../unsubscribe/UnsubscribeTokens.ts"
import type { DeliveryRow } from "./DeliveryRecords.ts"

/** Hashes that are kept, of the messages that were signed last. */
const hashesKept = 1_000

const hashKind = ({ mailHashHeapMegabytes, mailHashMillis }: Limits): JobKind => ({
  module: new URL("../signing/BodyHashThread.ts", import.meta.url),
  isolation: "thread",
  deadlineMillis: mailHashMillis,
  memoryMegabytes: mailHashHeapMegabytes
})

/**
 * Hashes of bodies: the copies of a message have one body, and so have all attempts. That of 25 MiB takes a tenth of a second,
 * so long ones are made in a thread, one after the other.
 */
const makeBodyHashes = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const workers = yield* Workers
  const inTurn = Semaphore.makeUnsafe(1).withPermits(1)
  const kind = hashKind(limits)
  const hashes = new Map<string, string>()
  const known = (messageId: string): string | undefined => {
    const hash = hashes.get(messageId)
    // The one that was used last is at the end.
    if (hash !== undefined) keep(messageId, hash)
    return hash
  }
  const keep = (messageId: string, hash: string): string => {
    hashes.delete(messageId)
    hashes.set(messageId, hash)
    const [oldest] = hashes.keys()
    if (oldest !== undefined && hashes.size > hashesKept) hashes.delete(oldest)
    return hash
  }
  const inThread = (messageId: string, owner: string, raw: Buffer): Effect.Effect<string, JobNotDone> =>
    Effect.suspend(() => {
      // The copies before it may have waited for the same.
      const hash = known(messageId)
      if (hash !== undefined) return Effect.succeed(hash)
      const bytes = new Uint8Array(raw)
      // BodyHashThread.ts answers with a hash.
      return Effect.map(workers.run({ kind, owner, ask: bytes, transfer: [bytes.buffer] }), (answer) =>
        keep(messageId, answer as string)
      )
    })
  return (messageId: string, owner: string, raw: Buffer): Effect.Effect<string, JobNotDone> =>
    Effect.suspend(() => {
      const hash = known(messageId)
      if (hash !== undefined) return Effect.succeed(hash)
      return raw.length < limits.mailHashInPlaceBytes
        ? Effect.succeed(keep(messageId, bodyHashOf(raw)))
        : inTurn(inThread(messageId, owner, raw))
    })
})

/**
 * Makes the headers of one recipient's copy: the way to opt out of bulk mail, and the signature. It fails where the hash of a
 * long body cannot be made now. Source: RFC 8058, RFC 6376.
 */
export const make = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const domains = yield* MailDomains
  const { pathOf } = yield* UnsubscribeTokens
  const hashOf = yield* makeBodyHashes
  return (row: DeliveryRow, owner: string, message: Uint8Array): Effect.Effect<Buffer, JobNotDone> => {
    const raw = Buffer.from(message.buffer, message.byteOffset, message.length)
    const keys = domains.signingKeys(owner, row.from_address.slice(row.from_address.lastIndexOf("@") + 1))
    // One click is believed of signed mail alone (RFC 8058, 4), and over https.
    const isOneClick = row.is_bulk && keys.length > 0 && baseUrl?.startsWith("https:") === true
    const url = isOneClick ? `${baseUrl}${pathOf(row.id)}` : row.unsubscribe_url
    const extra = [
      ...(url === null ? [] : [["List-Unsubscribe", `<${url}>`] as const]),
      ...(isOneClick ? [["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"] as const] : [])
    ]
    if (keys.length === 0) return Effect.promise(() => signedHead({ raw, extra, keys }))
    return Effect.flatMap(hashOf(row.message_id, owner, raw), (bodyHash) =>
      Effect.promise(() => signedHead({ raw, extra, keys, bodyHash }))
    )
  }
})
