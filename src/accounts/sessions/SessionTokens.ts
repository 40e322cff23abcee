import { createHmac, timingSafeEqual } from "node:crypto"

/** The session's id without its prefix, the second in which the token ends, and HMAC-SHA256 of both in base64url. */
const form = /^sst_([0-9A-Za-z]{22})\.([0-9]{1,12})\.([0-9A-Za-z_-]{43})$/

/** Whether a secret is meant to be a token; a prefix tells. */
export const isToken = (secret: string): boolean => secret.startsWith("sst_")

/**
 * Tokens of sessions, for scripts of our own pages. They are signed and not stored: every process can check one, and its
 * session, which is looked up each time, ends it. Source: contract/sessions#tokens.
 */
export class SessionTokens {
  readonly #secret: Uint8Array

  /** @param secret the same in all processes */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  make(sessionId: string, endsAt: Date): string {
    const said = `${sessionId.slice(sessionId.indexOf("_") + 1)}.${Math.floor(endsAt.getTime() / 1000)}`
    return `sst_${said}.${this.#signatureOf(said)}`
  }

  /** the id of the token's session without its prefix; undefined: forged, or over */
  read(token: string, nowMillis: number): string | undefined {
    const [, id, seconds, signature = ""] = form.exec(token) ?? []
    if (id === undefined) return undefined
    const expected = this.#signatureOf(`${id}.${seconds}`)
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return undefined
    return Number(seconds) * 1000 > nowMillis ? id : undefined
  }

  #signatureOf(said: string): string {
    return createHmac("sha256", this.#secret).update(said).digest("base64url")
  }
}
