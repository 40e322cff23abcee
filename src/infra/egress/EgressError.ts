import { Schema } from "effect"

/** Reasons that an entry of `EGRESS_ALLOW` overrules. Those of addresses are in SpecialPurpose.tsv, but for the own ones. */
export const openReasons = [
  "private address",
  "loopback address",
  "link-local address",
  "shared address",
  "multicast address",
  "broadcast address",
  "unspecified address",
  "reserved address",
  "documentation address",
  "benchmarking address",
  "IPv4 address in IPv6",
  "NAT64 address",
  "6to4 address",
  "Teredo address",
  "ISATAP address",
  "nearest server of an anycast address",
  "cloud platform address",
  "own address",
  "not https"
] as const

const closedReasons = [
  "not a URL",
  "not a host name",
  "not a port",
  "address with a zone",
  "credentials in the URL"
] as const

export const egressReasons = [...openReasons, ...closedReasons] as const

export type EgressReason = (typeof egressReasons)[number]

const isOpen = (reason: string): boolean => openReasons.some((open) => open === reason)

/** No connection was tried, since the address is none that strangers may name. */
export class EgressRefused extends Schema.TaggedError<EgressRefused>()("EgressRefused", {
  /** without a port; never a path or a query */
  host: Schema.String,
  reason: Schema.Literals(egressReasons)
}) {
  override get message(): string {
    const hint = isOpen(this.reason) ? " (EGRESS_ALLOW can open it)" : ""
    return `Access to ${this.host} is blocked: ${this.reason}${hint}`
  }
}

/**
 * The address may be named, and there was no (whole) answer. "name": it has no addresses; "connect": none of them takes a
 * connection; "tls": no certificate for this name; "time" and "size": a limit was reached; "answer": it broke off, or is no
 * HTTP; "redirect": it leads nowhere, or too far; "request": the caller's headers or method are invalid; "busy": too many
 * are under way.
 */
export class EgressFailed extends Schema.TaggedError<EgressFailed>()("EgressFailed", {
  host: Schema.String,
  kind: Schema.Literals(["name", "connect", "tls", "time", "size", "answer", "redirect", "request", "busy"]),
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.host}: ${this.problem}`
  }
}
