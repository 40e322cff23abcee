import type { Domain, DomainRecord, DomainRow, Finding, Selector } from "#schemas/mail/Domain.ts"
import { domainLimits, type DomainSettings } from "./DomainSettings.ts"

type Settings = DomainSettings["Service"]

/** A record that a domain is to have. */
export interface WantedRecord extends Pick<DomainRecord, "kind" | "type" | "name" | "value"> {
  /** of the records at that name: texts whole, or `10 mx.example.com` */
  readonly judge: (found: ReadonlyArray<string>) => Finding
}

export const otherSelector = (selector: Selector): Selector => (selector === "sb1" ? "sb2" : "sb1")

/** The name of a key's record. Source: RFC 6376, 3.6.2.1. */
export const keyName = (selector: Selector, domain: string): string => `${selector}._domainkey.${domain}`

/** The name itself, and those above it of two labels or more; nearest first. */
export const namesFrom = (name: string): ReadonlyArray<string> => {
  const labels = name.split(".")
  return labels.slice(0, -1).map((_, first) => labels.slice(first).join("."))
}

const foundMax = 5
const foundLengthMax = 500

/** Of records that strangers publish: ASCII alone, since not every text can be kept. */
const finding = (
  status: Finding["status"],
  found: ReadonlyArray<string>,
  problem: string | null = null
): Finding => ({
  status,
  found: found.slice(0, foundMax).map((text) => text.replace(/[^\x20-\x7e]/gu, "?").slice(0, foundLengthMax)),
  problem
})

/** DNS gave no answer. */
export const unanswered = (problem: string): Finding => finding("missing", [], problem)

/** `a=b; c=d`; undefined: it is no list of tags, or has one twice. Source: RFC 6376, 3.2. */
const tagsOf = (text: string): ReadonlyMap<string, string> | undefined => {
  const tags = new Map<string, string>()
  for (const part of text.replace(/;\s*$/, "").split(";")) {
    const end = part.indexOf("=")
    const name = part.slice(0, Math.max(end, 0)).trim()
    if (!/^[A-Za-z]\w*$/.test(name) || tags.has(name)) return undefined
    tags.set(name, part.slice(end + 1).trim())
  }
  return tags
}

const isListed = (list: string | undefined, ...values: ReadonlyArray<string>): boolean =>
  list === undefined || list.split(":").some((item) => values.includes(item.trim()))

/** Source: RFC 6376, 3.6.1. Of several records at one name verifiers may take any (3.6.2.2). */
const dkimProblem = (found: ReadonlyArray<string>, publicKey: string): string | null => {
  if (found.length > 1) return "there are several records: verifiers may take any of them"
  const tags = tagsOf(found[0] ?? "")
  if (tags === undefined) return "it is no list of tags"
  const version = tags.get("v")
  if (version !== undefined && (version !== "DKIM1" || [...tags.keys()][0] !== "v"))
    return "v: expected DKIM1, first of all"
  if ((tags.get("k") ?? "rsa") !== "rsa") return "k: expected rsa"
  if (tags.get("p")?.replace(/\s/g, "") !== publicKey) return "p: it is another key"
  if (!isListed(tags.get("h"), "sha256")) return "h: does not allow sha256"
  if (!isListed(tags.get("s"), "*", "email")) return "s: does not allow email"
  return null
}

const dkimRecord = (name: string, selector: Selector, publicKey: string): WantedRecord => ({
  kind: "dkim",
  type: "TXT",
  name: keyName(selector, name),
  value: `v=DKIM1; k=rsa; p=${publicKey}`,
  judge: (found) => {
    if (found.length === 0) return finding("missing", found)
    const problem = dkimProblem(found, publicKey)
    return finding(problem === null ? "ok" : "different", found, problem)
  }
})

const isSpf = (text: string): boolean => /^v=spf1(?: |$)/i.test(text)

/** Mechanisms in lower case up to `all`, which ends the record; without the qualifier that is meant anyway. */
const mechanismsOf = (text: string): ReadonlyArray<string> => {
  const terms = text.toLowerCase().split(/ +/)
  const end = terms.findIndex((term) => /^[+?~-]?all$/.test(term))
  return terms.slice(1, end < 0 ? undefined : end).map((term) => term.replace(/^\+/, ""))
}

/** Source: RFC 7208, 4.5 (one record) and 5. */
const spfRecord = (name: string, wanted: ReadonlyArray<string>): WantedRecord => ({
  kind: "spf",
  type: "TXT",
  name,
  value: `v=spf1 ${wanted.join(" ")} ~all`,
  judge: (texts) => {
    const found = texts.filter(isSpf)
    const [record] = found
    if (record === undefined) return finding("missing", found)
    if (found.length > 1) return finding("different", found, "there are several records: none of them counts")
    const given = mechanismsOf(record)
    const lacking = wanted.filter((mechanism) => !given.includes(mechanism))
    return lacking.length === 0
      ? finding("ok", found)
      : finding("different", found, `it lacks ${lacking.join(" ")}`)
  }
})

/** The record that is there, with the mechanisms that it lacks: a domain has one. */
const joinedSpf = (wanted: ReadonlyArray<string>, { found }: Finding): string | undefined => {
  const [record, ...others] = found
  if (record === undefined || others.length > 0 || record.length >= foundLengthMax) return undefined
  const given = mechanismsOf(record)
  const lacking = wanted.filter((mechanism) => !given.includes(mechanism))
  return [record.slice(0, "v=spf1".length), ...lacking, record.slice("v=spf1".length).trim()]
    .filter((part) => part !== "")
    .join(" ")
}

/** Any policy will do. Source: RFC 7489, 6.3. */
const dmarcRecord = (name: string): WantedRecord => ({
  kind: "dmarc",
  type: "TXT",
  name: `_dmarc.${name}`,
  value: "v=DMARC1; p=none",
  judge: (texts) => {
    const found = texts.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text))
    if (found.length === 0) return finding("missing", found)
    if (found.length > 1) return finding("different", found, "there are several records: none of them counts")
    const isPolicy = /^(?:none|quarantine|reject)$/i.test(tagsOf(found[0] ?? "")?.get("p") ?? "")
    return finding(
      isPolicy ? "ok" : "different",
      found,
      isPolicy ? null : "p: expected none, quarantine or reject"
    )
  }
})

const preference = 10

/** By this bounces come back. Source: RFC 5321, 5.1. */
const bounceRecord = (name: string, hostname: string): WantedRecord => ({
  kind: "bounce",
  type: "MX",
  name,
  value: `${preference} ${hostname}`,
  judge: (found) => {
    if (found.length === 0) return finding("missing", found)
    const isNamed = found.some((text) => text.split(" ")[1] === hostname)
    return finding(isNamed ? "ok" : "different", found, isNamed ? null : `none of them is ${hostname}`)
  }
})

/** The records that a domain is to have, those of its keys first. */
export const recordsOf = (
  row: Pick<DomainRow, "name" | "selector" | "public_key" | "next_public_key">,
  { bounceDomain, hostname, spf }: Settings
): ReadonlyArray<WantedRecord> => [
  dkimRecord(row.name, row.selector, row.public_key),
  ...(row.next_public_key === null
    ? []
    : [dkimRecord(row.name, otherSelector(row.selector), row.next_public_key)]),
  ...(spf.length === 0 ? [] : [spfRecord(row.name, spf)]),
  dmarcRecord(row.name),
  ...(bounceDomain === undefined || hostname === undefined ? [] : [bounceRecord(bounceDomain, hostname)])
]

/** The key of a finding in its row. */
export const findingKey = ({ kind, name }: Pick<WantedRecord, "kind" | "name">): string => `${kind} ${name}`

/** A string in DNS has a length of one byte (RFC 1035, 3.3). */
const stringLengthMax = 255
const zoneSeconds = 3_600

const zoneLine = ({ name, type, value }: Pick<WantedRecord, "type" | "name" | "value">): string => {
  const data =
    type === "MX"
      ? `${value}.`
      : Array.from({ length: Math.ceil(value.length / stringLengthMax) }, (_, part) =>
          JSON.stringify(value.slice(part * stringLengthMax, (part + 1) * stringLengthMax))
        ).join(" ")
  return `${name}. ${zoneSeconds} IN ${type} ${data}`
}

const keysOf = (row: DomainRow): Domain["keys"] => {
  const other = otherSelector(row.selector)
  const retired = row.retired_at === null ? undefined : retiredUntil(row.retired_at)
  return [
    { selector: row.selector, state: "signing", keep_until: null },
    ...(row.next_public_key === null
      ? []
      : [{ selector: other, state: "awaited", keep_until: null } as const]),
    ...(retired === undefined ? [] : [{ selector: other, state: "retired", keep_until: retired } as const])
  ]
}

export const retiredUntil = (at: Date): Date => new Date(at.getTime() + domainLimits.mailKeyRetiredMillis)

/** A domain as its owner sees it. */
export const shownDomain = (row: DomainRow, settings: Settings): Domain => ({
  id: row.id,
  name: row.name,
  verified: row.verified_at !== null,
  verified_at: row.verified_at,
  looked_up_at: row.looked_up_at,
  created_at: row.created_at,
  keys: keysOf(row),
  records: recordsOf(row, settings).map(({ kind, name, type, value: usual }) => {
    const looked = row.findings[findingKey({ kind, name })]
    const isJoined = kind === "spf" && looked?.status === "different"
    const value = (isJoined ? joinedSpf(settings.spf, looked) : undefined) ?? usual
    const { found = [], problem = null, status = null } = looked ?? {}
    return { kind, type, name, value, zone: zoneLine({ name, type, value }), status, found, problem }
  })
})
