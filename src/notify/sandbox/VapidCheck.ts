import { createPublicKey, verify } from "node:crypto"
import { Predicate } from "effect"
import { subjectFault } from "#streams/notify/channels/Vapid.ts"
import { pointOf } from "./PushReceiver.ts"
import { jsonOf, SandboxRefusal } from "./SandboxRequest.ts"

/** Longer ones are refused: RFC 8292, section 2. */
const validSecondsMax = 24 * 3_600

/** Tokens whose signature is known to be good: a sender uses one for hours. */
const knownMax = 1_000

export interface Claims {
  /** the sender's `applicationServerKey` */
  readonly publicKey: string
  readonly aud: string
  /** epoch seconds */
  readonly exp: number
  readonly sub: string | null
}

const refused = (problem: string, reason = "BadJwtToken"): SandboxRefusal =>
  new SandboxRefusal(403, `authorization: ${problem}`, { reason })

/** The check of `Authorization: vapid t=…, k=…` at a push service. Source: RFC 8292. */
export class VapidCheck {
  readonly #known = new Map<string, Claims>()

  /**
   * Throws a `SandboxRefusal`: 401 without a token, 403 for one that is not good.
   *
   * @param origin the push service's own
   * @param boundTo the key that the subscription was made with
   */
  claimsOf(
    authorization: string | undefined,
    {
      boundTo,
      nowMillis,
      origin
    }: { readonly origin: string; readonly boundTo: string | undefined; readonly nowMillis: number }
  ): Claims {
    const { k, t } = parametersOf(authorization)
    const known = this.#known.get(`${t} ${k}`)
    const claims = known ?? signedClaims(t, k)
    if (known === undefined) this.#keep(`${t} ${k}`, claims)
    const now = nowMillis / 1_000
    if (claims.aud !== origin) throw refused(`aud: expected ${origin}`)
    if (!(claims.exp > now)) throw refused("exp: is over", "ExpiredJwtToken")
    if (claims.exp > now + validSecondsMax) throw refused(`exp: more than ${validSecondsMax} s ahead`)
    const fault = claims.sub === null ? undefined : subjectFault(claims.sub)
    if (fault !== undefined) throw refused(`sub: ${fault}`)
    if (boundTo !== undefined && boundTo !== claims.publicKey)
      throw refused("k: the subscription was made with another applicationServerKey", "VapidPkHashMismatch")
    return claims
  }

  #keep(token: string, claims: Claims): void {
    this.#known.set(token, claims)
    for (const [oldest] of this.#known) {
      if (this.#known.size <= knownMax) break
      this.#known.delete(oldest)
    }
  }
}

const missing = (problem: string): SandboxRefusal =>
  new SandboxRefusal(401, `authorization: ${problem}`, { headers: { "www-authenticate": "vapid" } })

const parametersOf = (authorization: string | undefined): { readonly t: string; readonly k: string } => {
  if (authorization === undefined) throw missing("is required")
  const [, rest] = /^vapid +(.+)$/iu.exec(authorization) ?? []
  if (rest === undefined) throw missing("expected vapid t=…, k=…")
  const parameters = new Map<string, string>()
  for (const part of rest.split(",")) {
    const [, name = "", value = ""] = /^\s*([a-z]+)\s*=\s*"?([\w.=-]+)"?\s*$/iu.exec(part) ?? []
    parameters.set(name.toLowerCase(), value)
  }
  const [t, k] = [parameters.get("t"), parameters.get("k")]
  if (t === undefined || k === undefined) throw missing("expected vapid t=…, k=…")
  return { t, k: k.replace(/=+$/u, "") }
}

const signedClaims = (token: string, publicKey: string): Claims => {
  const [header = "", payload = "", signature = "", ...more] = token.split(".")
  const point = pointOf(publicKey)
  if (point === undefined) throw refused("k: expected a point of P-256 in base64url")
  const [head, claims] = [header, payload].map((part) => jsonOf(Buffer.from(part, "base64url")))
  if (more.length > 0 || !Predicate.isReadonlyObject(head) || !Predicate.isReadonlyObject(claims))
    throw refused("t: expected a JWT")
  if (head["alg"] !== "ES256") throw refused("t: expected the algorithm ES256")
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"))
  const key = createPublicKey({ key: { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, format: "jwk" })
  const bytes = Buffer.from(signature, "base64url")
  const isSigned =
    bytes.length === 64 &&
    verify("sha256", Buffer.from(`${header}.${payload}`), { key, dsaEncoding: "ieee-p1363" }, bytes)
  if (!isSigned) throw refused("t: is not signed by k")
  const { aud, exp, sub = null } = claims
  if (typeof aud !== "string") throw refused("aud: is required")
  if (typeof exp !== "number") throw refused("exp: is required")
  if (sub !== null && typeof sub !== "string") throw refused("sub: expected text")
  return { publicKey: point.toString("base64url"), aud, exp, sub }
}
