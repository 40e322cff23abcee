import { Resolver } from "node:dns/promises"
import { Data, Effect } from "effect"

interface MxRecord {
  readonly exchange: string
  readonly priority: number
}

/** `code` is that of node:dns: ENOTFOUND (no such name), ENODATA (no such record), ESERVFAIL, ETIMEOUT, … */
export class MxFailed extends Data.TaggedError("MxFailed")<{ readonly code: string }> {}

export type MxLookup = (domain: string) => Effect.Effect<ReadonlyArray<MxRecord>, MxFailed>

/** The servers of a domain, best first; or why it has none, for good ("None") or at this time ("Failed"). */
export type MxHosts =
  | { readonly _tag: "Hosts"; readonly hosts: ReadonlyArray<string> }
  | { readonly _tag: "None" | "Failed"; readonly reason: string }

interface MxLookupOptions {
  /** name servers as `MAIL_DNS` has them; none: the system's */
  readonly servers: ReadonlyArray<string>
  readonly tryMillis: number
  readonly tries: number
}

/** MX records by c-ares. Its queries end with an interruption. */
export const makeMxLookup =
  ({ servers, tries, tryMillis }: MxLookupOptions): MxLookup =>
  (domain) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const resolver = new Resolver({ timeout: tryMillis, tries })
        if (servers.length > 0) resolver.setServers(servers)
        return resolver
      }),
      (resolver) =>
        Effect.tryPromise({
          try: () => resolver.resolveMx(domain),
          catch: (error) =>
            new MxFailed({
              code: error instanceof Error && "code" in error ? String(error.code) : String(error)
            })
        }),
      (resolver) => Effect.sync(() => resolver.cancel())
    )

const nameOf = (exchange: string): string => exchange.toLowerCase().replace(/\.$/, "")

const none = (reason: string): MxHosts => ({ _tag: "None", reason })

/**
 * The records in the order in which they are tried: by priority, those of one priority in any order. This host, and those
 * that are no better, would send a message in a circle. Source: RFC 5321 5.1, RFC 7505.
 */
const ordered = (records: ReadonlyArray<MxRecord>, own: string, most: number): MxHosts => {
  const known = records.map(({ exchange, priority }) => ({ host: nameOf(exchange), priority }))
  if (known.every(({ host }) => host === "")) return none("556 5.1.10 the domain takes no mail (null MX)")
  const ownPriority = Math.min(...known.filter(({ host }) => host === own).map(({ priority }) => priority))
  const hosts = known
    .filter(({ host, priority }) => host !== "" && priority < ownPriority)
    .map((one) => ({ ...one, turn: Math.random() }))
    .toSorted((a, b) => a.priority - b.priority || a.turn - b.turn)
    .map(({ host }) => host)
  return hosts.length === 0
    ? none("554 5.4.6 the domain's mail comes to this server, which does not keep it")
    : { _tag: "Hosts", hosts: [...new Set(hosts)].slice(0, most) }
}

/** The servers of a domain. One without MX records is its own. */
export const mxHostsOf = (
  lookUp: MxLookup,
  domain: string,
  { most, own }: { readonly own: string; readonly most: number }
): Effect.Effect<MxHosts> =>
  lookUp(domain).pipe(
    Effect.map((records): MxHosts =>
      records.length === 0 ? { _tag: "Hosts", hosts: [domain] } : ordered(records, own.toLowerCase(), most)
    ),
    Effect.catch(({ code }): Effect.Effect<MxHosts> => {
      if (code === "ENODATA") return Effect.succeed({ _tag: "Hosts", hosts: [domain] })
      if (code === "ENOTFOUND") return Effect.succeed(none("550 5.1.2 there is no such domain"))
      return Effect.succeed({ _tag: "Failed", reason: `the name servers do not tell its MX (${code})` })
    })
  )
