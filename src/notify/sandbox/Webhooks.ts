import { createHmac, timingSafeEqual } from "node:crypto"
import { headersOf, type Judgement } from "./Peer.ts"
import { bad, type Fields, jsonOf, SandboxRefusal, type SandboxRequest } from "./SandboxRequest.ts"
import { type Webhook, WebhookService } from "./WebhookService.ts"

/** Standard Webhooks 1.0: an older timestamp, or one so far ahead, may be an attacker's repetition. */
const toleranceSeconds = 300
const idCharactersMax = 200
const states = ["active", "gone"] as const

interface SignedWebhook extends Webhook {
  secret: string | null
}

/** Receivers of generic webhooks. Source: Standard Webhooks 1.0. */
export class Webhooks extends WebhookService<SignedWebhook> {
  readonly kind = "webhook"

  constructor(origin: () => string) {
    super(() => `${origin()}/webhooks`)
  }

  /** With a secret signatures are checked; it can be told later, as servers show theirs once the address is known. */
  protected begin(webhook: Webhook, fields: Fields): SignedWebhook {
    return { ...webhook, secret: secretOf(fields) ?? null }
  }

  protected apply(webhook: SignedWebhook, fields: Fields): void {
    const state = fields.oneOf("state", states)
    webhook.secret = secretOf(fields) ?? webhook.secret
    if (state !== undefined) webhook.state = state
  }

  protected told({ secret }: SignedWebhook): object {
    return { secret }
  }

  judge(id: string, request: SandboxRequest): Judgement {
    const headers = headersOf(request, ["content-type", "webhook-id", "webhook-timestamp"])
    const webhook = this.find(id)
    const base = { channel: webhook?.id ?? null, messageId: headers["webhook-id"], headers, vapid: null }
    try {
      const { isSigned, payload, webhook: known } = readWebhook(webhook, request)
      const accept = () => {
        known.accepted++
        return { status: 204 }
      }
      return {
        ...base,
        signed: isSigned,
        payload,
        outcome: { _tag: "Taken", status: 204, state: null, accept }
      }
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error
      const signed = error.status === 401 ? false : null
      return { ...base, signed, payload: null, outcome: { _tag: "Refused", refusal: error } }
    }
  }
}

const secretOf = (fields: Fields): string | undefined => {
  const expected = "expected whsec_ and 24 to 64 bytes in base64"
  const secret = fields.text("secret", /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/u, expected)
  const bytes = secret === undefined ? 24 : keyOf(secret).length
  if (bytes < 24 || bytes > 64) throw bad(`secret: ${expected}`)
  return secret
}

const keyOf = (secret: string): Buffer => Buffer.from(secret.slice("whsec_".length), "base64")

const readWebhook = (webhook: SignedWebhook | undefined, { body, headers, nowMillis }: SandboxRequest) => {
  if (webhook === undefined) throw new SandboxRefusal(404, "there is no such webhook")
  if (webhook.state === "gone") throw new SandboxRefusal(410, "the webhook is gone")
  const [id, timestamp, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = String(headers[name] ?? "")
    if (value === "") throw bad(`${name}: is required`)
    return value
  })
  if ((id ?? "").length > idCharactersMax) throw bad(`webhook-id: at most ${idCharactersMax} characters`)
  if (!/^\d{1,12}$/u.test(timestamp ?? "")) throw bad("webhook-timestamp: expected epoch seconds")
  if (Math.abs(nowMillis / 1_000 - Number(timestamp)) > toleranceSeconds)
    throw bad(`webhook-timestamp: more than ${toleranceSeconds} s away from now`)
  if (!/^application\/json\b/iu.test(headers["content-type"] ?? ""))
    throw new SandboxRefusal(415, "content-type: expected application/json")
  const isSigned =
    webhook.secret === null
      ? null
      : hasSignature(webhook.secret, signature ?? "", `${id}.${timestamp}.`, body)
  if (isSigned === false) throw new SandboxRefusal(401, "webhook-signature: none is that of the secret")
  const payload = jsonOf(body)
  if (payload === undefined) throw bad("body: expected JSON")
  return { webhook, isSigned, payload }
}

/** One of several, `v1,<base64>` each, with spaces between them. */
const hasSignature = (secret: string, signatures: string, prefix: string, body: Buffer): boolean => {
  const own = createHmac("sha256", keyOf(secret)).update(prefix).update(body).digest()
  return signatures.split(" ").some((one) => {
    const [, text = ""] = /^v1,([A-Za-z0-9+/]{43}=)$/u.exec(one) ?? []
    const theirs = Buffer.from(text, "base64")
    return theirs.length === own.length && timingSafeEqual(theirs, own)
  })
}
