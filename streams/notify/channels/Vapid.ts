import { createECDH, createPrivateKey, hash, type KeyObject, sign } from "node:crypto"
import { curveName } from "./PushEncryption.ts"

const hour = 3_600_000

/** Push services refuse one that is valid for more than 24 h. */
const validMillis = 12 * hour
/** Renewed an hour before it ends: the clocks of push services differ. */
const keptMillis = 11 * hour
/** Anyone may subscribe with an origin of their own. */
const originsMax = 1_000

export interface VapidSettings {
  /** 32 random bytes: the private key, or, if they are outside of the curve's order, what it is made from */
  readonly secret: Uint8Array
  /** a `mailto:` or `https:` address at which push services reach the operator; left out if there is none */
  readonly subject?: string
}

interface Signed {
  readonly atMillis: number
  readonly value: string
}

/**
 * This server, as push services know it: signs a token per push service and keeps it for 11 of its 12 hours. Source: RFC
 * 8292.
 */
export class Vapid {
  /** the `applicationServerKey` with which browsers subscribe: 65 bytes in base64url */
  readonly publicKey: string
  readonly #key: KeyObject
  readonly #subject: string | undefined
  /** by origin, the oldest signature first */
  readonly #signed = new Map<string, Signed>()

  constructor({ secret, subject }: VapidSettings) {
    const { d, x, y } = keysOf(secret)
    this.publicKey = Buffer.concat([Buffer.of(4), x, y]).toString("base64url")
    const coordinates = { d: d.toString("base64url"), x: x.toString("base64url"), y: y.toString("base64url") }
    this.#key = createPrivateKey({ key: { kty: "EC", crv: "P-256", ...coordinates }, format: "jwk" })
    this.#subject = subject
  }

  /**
   * The header `Authorization` for an endpoint at this origin.
   *
   * @param isNew signs again, since the push service refused the last one
   */
  authorization(origin: string, nowMillis: number, isNew = false): string {
    const known = this.#signed.get(origin)
    // A clock that was set back by more would make it valid for too long.
    if (!isNew && known !== undefined && Math.abs(nowMillis - known.atMillis) < keptMillis) return known.value
    const value = `vapid t=${this.#token(origin, nowMillis)}, k=${this.publicKey}`
    this.#signed.delete(origin)
    this.#signed.set(origin, { atMillis: nowMillis, value })
    for (const [oldest] of this.#signed) {
      if (this.#signed.size <= originsMax) break
      this.#signed.delete(oldest)
    }
    return value
  }

  #token(origin: string, nowMillis: number): string {
    const claims = {
      aud: origin,
      exp: Math.floor((nowMillis + validMillis) / 1_000),
      ...(this.#subject === undefined ? {} : { sub: this.#subject })
    }
    const text = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`
    const signature = sign("sha256", Buffer.from(text), { key: this.#key, dsaEncoding: "ieee-p1363" })
    return `${text}.${signature.toString("base64url")}`
  }
}

const header = Buffer.from('{"typ":"JWT","alg":"ES256"}').toString("base64url")

/** One in 2^32 secrets is no number below the curve's order; the hash of it is. */
const keysOf = (secret: Uint8Array): { readonly d: Buffer; readonly x: Buffer; readonly y: Buffer } => {
  if (secret.length !== 32) throw new RangeError(`a VAPID secret has 32 bytes, not ${secret.length}`)
  const curve = createECDH(curveName)
  const d = isBelowOrder(secret) ? Buffer.from(secret) : hash("sha256", secret, "buffer")
  curve.setPrivateKey(d)
  const point = curve.getPublicKey()
  return { d, x: point.subarray(1, 33), y: point.subarray(33) }
}

/** SEC 2, section 2.4.2: n of secp256r1. */
const order = Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex")

const isBelowOrder = (secret: Uint8Array): boolean =>
  secret.some((byte) => byte !== 0) && Buffer.compare(secret, order) < 0

const subjectExpected = "expected a mailto: or https: address without spaces, of at most 255 characters"

/** The fault of a subject that push services would refuse, or undefined. Apple answers 403 to those with localhost. */
export const subjectFault = (subject: string): string | undefined => {
  if (subject.length > 255 || /\s/u.test(subject) || !URL.canParse(subject)) return subjectExpected
  const { hostname, pathname, protocol } = new URL(subject)
  if (protocol === "mailto:") {
    const [, host] = /^[^@]+@([^@]+)$/u.exec(pathname) ?? []
    return host === undefined ? subjectExpected : localFault(host)
  }
  return protocol === "https:" ? localFault(hostname) : subjectExpected
}

const localFault = (host: string): string | undefined =>
  /^(?:.*\.)?localhost\.?$/iu.test(host)
    ? "expected a host that is not localhost: Apple refuses it"
    : undefined
