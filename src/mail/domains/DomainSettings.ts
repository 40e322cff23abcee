import { Context, Result } from "effect"
import { Dns, NetAddress } from "effect/net"
import type { EnvironmentReader } from "#src/EnvironmentReader.ts"
import { domainNameOf } from "#streams/mail/DomainName.ts"

/** Numbers of mail domains. */
export const domainLimits = {
  /** domains of one user; above it 409 */
  mailDomainsPerUser: 100,
  /** one try of a question to DNS, and how many there are */
  mailDnsTryMillis: 2_000,
  mailDnsTries: 2,
  /** all questions about one domain; those that are not answered by then were not */
  mailDomainLookMillis: 10_000,
  /** looks at domains that users ask one process for at once, in fair shares per user; above it 429 */
  mailDomainLooks: 32,
  /** pause between looks at a domain … */
  mailDomainLookEveryMillis: 24 * 3_600_000,
  /** … of which one that has not been verified for so long is looked at no more, unless it is asked for */
  mailDomainUnverifiedMillis: 30 * 24 * 3_600_000,
  /** domains that the daily look takes at once, by four */
  mailDomainsAtOnce: 100,
  /** the record of a key that signs no more stays for so long: mail on its way is verified by it */
  mailKeyRetiredMillis: 7 * 24 * 3_600_000
} as const

/** The operator's part of the records of domains, and of who may send from which. */
interface Settings {
  /** `MAIL_SPF`: the mechanisms of those that send for this server, such as `include:_spf.relay.example`; unset: unknown */
  readonly spf: ReadonlyArray<string>
  /** `MAIL_BOUNCE_DOMAIN`, of return paths */
  readonly bounceDomain: string | undefined
  /** `MAIL_HOSTNAME`, the name of this server in mail */
  readonly hostname: string | undefined
  /** `MAIL_FROM_DOMAINS`, from which everybody may send; `*` stands for all */
  readonly fromDomains: ReadonlySet<string>
  /** `MAIL_DNS`, name servers as `192.0.2.53` or `192.0.2.53:5353`; empty: the system's */
  readonly nameServers: ReadonlyArray<string>
}

export class DomainSettings extends Context.Service<DomainSettings, Settings>()(
  "signalbox/mail/DomainSettings"
) {
  static from(read: EnvironmentReader): Settings {
    const name = (variable: string) =>
      read.parsed(variable, mailDomainOf, "takes a domain name of two labels or more")
    return {
      spf: read.parsed("MAIL_SPF", mechanismsOf, spfFault) ?? [],
      bounceDomain: name("MAIL_BOUNCE_DOMAIN"),
      hostname: name("MAIL_HOSTNAME"),
      fromDomains: read.list(
        "MAIL_FROM_DOMAINS",
        (text) => (text === "*" ? text : mailDomainOf(text)),
        "takes domain names, or *",
        []
      ),
      nameServers: [
        ...read.list(
          "MAIL_DNS",
          (text) => {
            const server = Dns.nameServerFromString(text)
            return Result.isSuccess(server) ? NetAddress.formatInet(server.success) : undefined
          },
          "takes addresses like 192.0.2.53 or 192.0.2.53:5353",
          []
        )
      ]
    }
  }
}

/** `sb1._domainkey.` before it has to fit into the 253 characters of a name in DNS. */
const nameLengthMax = 238

/** A domain as people write it, in lower-case ASCII (`xn--…`), without the dot at its end; undefined: it is none. */
export const mailDomainOf = (text: string): string | undefined => {
  const name = domainNameOf(text.replace(/\.$/, ""))
  return name === undefined || name.length > nameLengthMax ? undefined : name
}

/** Mechanisms of RFC 7208, 5, without `all`, which the record ends with. */
const mechanism = /^\+?(?:(?:include|exists|ip4|ip6):[^\s"\\]{1,200}|(?:a|mx)(?:[:/][^\s"\\]{1,200})?)$/i
const spfFault = "takes mechanisms of SPF like include:_spf.relay.example or ip4:192.0.2.1, at most 10"
const mechanismsMax = 10

/** The mechanisms of `v=spf1 include:a.example ~all`, or of its middle alone. */
const mechanismsOf = (text: string): ReadonlyArray<string> | undefined => {
  const terms = text
    .split(/\s+/)
    .filter((term) => !/^(?:v=spf1|[+?~-]?all)$/i.test(term))
    .map((term) => term.toLowerCase().replace(/^\+/, ""))
  const isForm = terms.length > 0 && terms.length <= mechanismsMax && terms.every((_) => mechanism.test(_))
  return isForm ? terms : undefined
}
