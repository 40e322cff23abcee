import { isIPv4 } from "node:net"
import { Redacted, Result } from "effect"

/** The relay of `SMTP_URL`. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** "implicit": from the first byte (RFC 8314); "required": by STARTTLS (RFC 3207); "none": neither */
  readonly tls: "implicit" | "required" | "none"
  readonly login: { readonly user: string; readonly password: Redacted.Redacted } | null
}

const form = "smtps://user:password@host:465 or smtp://user:password@host:587"

/** Hosts that need no TLS: bytes to them stay on this machine, whose mail server seldom has a certificate for `localhost`. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."))

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** As an error of the configuration, which never has the text: there is a password in it. */
const refused = (fault: string) => Result.fail({ variable: "SMTP_URL" as const, fault })

/**
 * Reads `smtps://user:pass@host:465` or `smtp://host`, with percent-encoding in user and password. The port is 465 or 587
 * where none is named. `smtp` needs STARTTLS, unless `?tls=none` is added or the host is a loopback one.
 */
export const smtpServerOf = (
  text: string
): Result.Result<SmtpServer, { readonly variable: "SMTP_URL"; readonly fault: string }> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^smtps?:$/.test(url.protocol) || url.hostname === "")
    return refused(`takes ${form}`)
  if (!["", "/"].includes(url.pathname) || url.hash !== "")
    return refused(`takes ${form}, with nothing after the port but ?tls=none`)
  const isImplicit = url.protocol === "smtps:"
  const [option, ...more] = [...url.searchParams].map(([name, value]) => `${name}=${value}`)
  if (more.length > 0 || (option !== undefined && option !== "tls=none"))
    return refused("takes no parameter but tls=none")
  if (isImplicit && option !== undefined) return refused("says both smtps and tls=none")
  if (url.port === "0") return refused("takes a port from 1 to 65535")
  const user = decoded(url.username)
  const password = decoded(url.password)
  if (user === undefined || password === undefined)
    return refused("has a user or password with a % that is not percent-encoding: write %25")
  if ((user === "") !== (password === "")) return refused("takes both a user and a password, or neither")
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(user + password))
    return refused("has a control character in user or password")
  const host = url.hostname.replace(/^\[|\]$/g, "")
  return Result.succeed({
    host,
    port: url.port === "" ? (isImplicit ? 465 : 587) : Number(url.port),
    tls: isImplicit ? "implicit" : option !== undefined || isLoopback(host) ? "none" : "required",
    login: user === "" ? null : { user, password: Redacted.make(password, { label: "SMTP_URL" }) }
  })
}
