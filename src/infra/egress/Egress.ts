import { createSecureContext, type SecureContext } from "node:tls"
import { networkInterfaces } from "node:os"
import type { Socket } from "node:net"
import * as NodeDns from "@effect/platform-node/NodeDns"
import { Context, Effect, Layer, Result, type Scope } from "effect"
import { Dns, NetAddress } from "effect/net"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { type Destination, dial, type TlsOptions } from "./Dial.ts"
import { EgressFailed, type EgressReason, egressReasons, EgressRefused } from "./EgressError.ts"
import type { EgressAllow } from "./EgressAllow.ts"
import { type EgressHost, hostIn, hostOf, isPort, quoted, textOf } from "./EgressHost.ts"
import { checkedUrl, type EgressAnswer, type EgressRequest, makeFetch, readUrl } from "./Fetch.ts"
import { embeddedIpv4, type Interfaces, OwnAddresses, specialPurposeOf } from "./Reachability.ts"

type EgressError = EgressRefused | EgressFailed

/**
 * The only way out to addresses that strangers give: webhooks, push endpoints, mail servers, pages. A name is looked up
 * once, refused if any of its addresses is not one of the Internet's, and connected to at the addresses that were checked.
 * The addresses of the operator's settings do not come here.
 */
export class Egress extends Context.Service<
  Egress,
  {
    /** Whether a host may be named: a name, or an address in any notation, with or without brackets. */
    readonly resolve: (host: string, port: number) => Effect.Effect<Destination, EgressError>
    /** A socket that closes with the scope. With `tls` the certificate is checked against the host. */
    readonly connect: (
      host: string,
      port: number,
      options?: { readonly tls?: boolean }
    ) => Effect.Effect<Socket, EgressError, Scope.Scope>
    /** https only, unless EGRESS_ALLOW names the host. An answer of any status is an answer. */
    readonly fetch: (request: EgressRequest) => Effect.Effect<EgressAnswer, EgressError>
    /** Whether `fetch` would ask this address, looked up now. */
    readonly check: (url: string) => Effect.Effect<void, EgressError>
    /** Whether an http address can be one that `check` takes. It looks no name up. */
    readonly isHttpAllowed: (url: URL) => boolean
    /**
     * Lets strangers name one origin of this server's own, with http too, until the scope closes: an address with its port,
     * as it stands in a URL. A name of the same address is still refused.
     */
    readonly open: (origin: string) => Effect.Effect<void, never, Scope.Scope>
  }
>()("signalbox/infra/Egress") {
  /** With the names of the `Dns` that the caller provides. */
  static readonly layerOverDns = Layer.effect(
    Egress,
    Effect.suspend(() => make)
  )

  static readonly layer: Layer.Layer<Egress, never, AppConfig> = this.layerOverDns.pipe(
    Layer.provide(
      Layer.effect(
        Dns.Dns,
        Effect.suspend(() => systemDns)
      )
    )
  )
}

/**
 * c-ares anew for each question: it reads the system's list of name servers when it is made, and its queries end with
 * their scope. That takes 0.1 ms.
 */
const systemDns = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const { dns: given } = yield* EgressSystem
  if (given !== undefined) return given
  const { egressNameMillis: millis, egressNameTries: tries } = limits
  const made = Effect.orDie(NodeDns.make({ timeout: millis / tries, tries }))
  return Dns.make({
    lookup: (host, family) => Effect.scoped(Effect.flatMap(made, (dns) => dns.lookup(host, { family }))),
    resolve: (name, type) => Effect.scoped(Effect.flatMap(made, (dns) => dns.resolve(name, type)))
  })
})

/** The system's interfaces, names and the certificates that are trusted (unset: Node's), unless a test brings its own. */
export const EgressSystem = Context.Reference<{
  readonly interfaces: Interfaces
  readonly dns?: Dns.Dns["Service"]
  readonly certificates?: string
}>("signalbox/infra/egress/EgressSystem", { defaultValue: () => ({ interfaces: networkInterfaces }) })

const make = Effect.gen(function* () {
  const { baseUrl, egressAllow: allow, limits } = yield* AppConfig
  const system = yield* EgressSystem
  const dns = yield* Dns.Dns
  const log = Effect.runForkWith(yield* Effect.context<never>())
  const own = new OwnAddresses(system.interfaces, limits.egressInterfacesMillis, (error) =>
    log(Effect.logWarning("The system does not tell the addresses of its interfaces", error))
  )
  const refusals = yield* makeRefusals(limits)
  const opened = new Set<string>()
  const rules: Rules = { allow, own, opened }
  const { certificates } = system
  // Late: the first one reads all certificates that Node trusts.
  let made: SecureContext | undefined
  const secureContext = () =>
    (made ??= createSecureContext(certificates === undefined ? {} : { ca: certificates }))

  const resolve = (host: string, port: number) => resolveWith(dns, rules, limits, host, port)
  const connectTo = (host: string, port: number, tls?: TlsOptions) =>
    Effect.flatMap(resolve(host, port), (destination) => dial(destination, limits, tls))
  const fetch = yield* makeFetch(
    (host, port, isTls) =>
      isTls
        ? connectTo(host, port, { secureContext: secureContext(), protocols: ["http/1.1"] })
        : Effect.flatMap(Effect.filterOrFail(resolve(host, port), isAllowed, notHttps), (destination) =>
            dial(destination, limits)
          ),
    { limits, userAgent: baseUrl === undefined ? "signalbox" : `signalbox (+${baseUrl})` }
  )
  const underWay = makeGate(limits.egressUnderWay)
  const guarded = <A, R>(use: Effect.Effect<A, EgressError, R>) =>
    Effect.tapErrorTag(underWay(use), "EgressRefused", refusals)

  return Egress.of({
    resolve: (host, port) => guarded(resolve(host, port)),
    connect: (host, port, { tls = false } = {}) =>
      Effect.acquireRelease(
        guarded(connectTo(host, port, tls ? { secureContext: secureContext() } : undefined)),
        (socket) => Effect.sync(() => socket.destroy()),
        { interruptible: true }
      ),
    fetch: (request) => guarded(fetch(request)),
    check: (url) => guarded(checkWith(resolve, url)),
    isHttpAllowed: (url) => {
      const host = hostOf(url.hostname)
      return Result.isSuccess(host) && mayHaveHttp(rules, host.success, portOf(url))
    },
    open: (origin) => openedWith(opened, originName(new URL(origin)))
  })
})

const checkWith = Effect.fnUntraced(function* (
  resolve: (host: string, port: number) => Effect.Effect<Destination, EgressError>,
  text: string
) {
  const url = yield* readUrl(text)
  yield* checkedUrl(url)
  const found = yield* resolve(url.hostname, portOf(url))
  if (url.protocol === "http:" && !found.isAllowed) return yield* notHttps(found)
})

const openedWith = (opened: Set<string>, name: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => opened.add(name)),
      () => Effect.sync(() => opened.delete(name))
    )
  )

const portOf = ({ port, protocol }: URL): number =>
  port === "" ? (protocol === "https:" ? 443 : 80) : Number(port)

/** The address of an origin and its port. */
const originName = (url: URL): string => `${hostIn(url)} ${portOf(url)}`
const isOpened = ({ opened }: Rules, host: EgressHost, port: number): boolean =>
  typeof host !== "string" && opened.has(`${textOf(host)} ${port}`)

const mayHaveHttp = (rules: Rules, host: EgressHost, port: number): boolean =>
  isOpened(rules, host, port) ||
  (typeof host === "string"
    ? rules.allow.opensName(host, port) || rules.allow.opensNetworks(port)
    : rules.allow.opensName(textOf(host), port) || rules.allow.opensAddress(host, port))

const isAllowed = (destination: Destination): boolean => destination.isAllowed
const notHttps = ({ host }: Destination): EgressError => new EgressRefused({ host, reason: "not https" })

interface Rules {
  readonly allow: EgressAllow
  readonly own: OwnAddresses
  /** origins of this server's own, by `originName` */
  readonly opened: ReadonlySet<string>
}

/** Why an address may not be reached. Opened by EGRESS_ALLOW, one that stands for an IPv4 address may be if that one may. */
const refusalOf = (rules: Rules, address: NetAddress.IpAddress, port: number): EgressReason | undefined => {
  const reason = rules.allow.opensAddress(address, port)
    ? undefined
    : (specialPurposeOf(address) ?? (rules.own.has(address) ? "own address" : undefined))
  const embedded = embeddedIpv4(address)
  return reason ?? (embedded === undefined ? undefined : refusalOf(rules, embedded, port))
}

const resolveWith = (
  dns: Dns.Dns["Service"],
  rules: Rules,
  limits: Limits,
  text: string,
  port: number
): Effect.Effect<Destination, EgressError> =>
  Effect.suspend(() => {
    const parsed = hostOf(text)
    if (Result.isFailure(parsed))
      return Effect.fail(new EgressRefused({ host: quoted(text), reason: parsed.failure }))
    const host = textOf(parsed.success)
    if (!isPort(port)) return Effect.fail(new EgressRefused({ host, reason: "not a port" }))
    const isNamed = rules.allow.opensName(host, port) || isOpened(rules, parsed.success, port)
    const found =
      typeof parsed.success === "string"
        ? lookUp(dns, host, isNamed, limits)
        : Effect.succeed([parsed.success])
    return Effect.flatMap(found, (addresses) => {
      const reasons = isNamed ? [] : addresses.map((address) => refusalOf(rules, address, port))
      const reason = reasons.find((known) => known !== undefined)
      if (reason !== undefined) return Effect.fail(new EgressRefused({ host, reason }))
      const isAllowed = isNamed || addresses.every((address) => rules.allow.opensAddress(address, port))
      return Effect.succeed({ host, port, addresses: addresses.slice(0, limits.egressAddresses), isAllowed })
    })
  })

/**
 * The addresses of a name, IPv6 first. Strangers' names are asked of the name servers by c-ares. The system's resolver would
 * hold a thread for each, of which a few slow ones leave none to the rest of the server, and would try search domains; it is
 * for names of the operator, which may be in its hosts file.
 */
const lookUp = (
  dns: Dns.Dns["Service"],
  host: string,
  isNamed: boolean,
  { egressNameMillis: millis }: Limits
): Effect.Effect<ReadonlyArray<NetAddress.IpAddress>, EgressFailed> => {
  const isLocal = isNamed || host === "localhost" || host.endsWith(".localhost")
  const asked: Effect.Effect<ReadonlyArray<NetAddress.IpAddress>, Dns.DnsError> = isLocal
    ? dns.lookup(host)
    : askServers(dns, host)
  return asked.pipe(
    Effect.mapError(
      ({ reason }) => new EgressFailed({ host, kind: "name", problem: `its name has no address (${reason})` })
    ),
    Effect.timeoutOrElse({
      duration: millis,
      orElse: () =>
        Effect.fail(new EgressFailed({ host, kind: "time", problem: `no address in ${millis} ms` }))
    })
  )
}

/** One of the two kinds is enough. */
const askServers = (dns: Dns.Dns["Service"], host: string) =>
  Effect.gen(function* () {
    const [six, four] = yield* Effect.all(
      [Effect.result(dns.resolve(host, "AAAA")), Effect.result(dns.resolve(host, "A"))],
      { concurrency: 2 }
    )
    const addresses = [
      ...(Result.isSuccess(six) ? six.success : []),
      ...(Result.isSuccess(four) ? four.success : [])
    ].map(({ address }) => address)
    return addresses.length === 0 && Result.isFailure(four) ? yield* four.failure : addresses
  })

/** Counts refusals for `/metrics`, and logs some of them: the host, never a path. */
const makeRefusals = Effect.fnUntraced(function* ({ egressLogPerMinute }: Limits) {
  const counts = new Map<EgressReason, number>(egressReasons.map((reason) => [reason, 0]))
  for (const reason of egressReasons)
    yield* SampledMetrics.register(
      [
        [
          "signalbox_egress_refused_total",
          "Addresses of strangers that were refused",
          () => counts.get(reason) ?? 0
        ]
      ],
      { reason }
    )
  let minute = 0
  let logged = 0
  return (refused: EgressRefused) =>
    Effect.suspend(() => {
      counts.set(refused.reason, (counts.get(refused.reason) ?? 0) + 1)
      const now = Math.floor(performance.now() / 60_000)
      logged = now === minute ? logged + 1 : 1
      minute = now
      return logged > egressLogPerMinute ? Effect.void : Effect.logInfo(refused.message)
    })
})

/** Lets so many be under way at once; one more fails at once. */
const makeGate = (most: number) => {
  let count = 0
  const busy = {
    host: "this server",
    kind: "busy",
    problem: `${most} requests to strangers are under way`
  } as const
  const enter = Effect.suspend(() =>
    count < most ? Effect.sync(() => void count++) : Effect.fail(new EgressFailed(busy))
  )
  const leave = Effect.sync(() => void count--)
  return <A, R>(use: Effect.Effect<A, EgressError, R>): Effect.Effect<A, EgressError, R> =>
    Effect.acquireUseRelease(
      enter,
      () => use,
      () => leave
    )
}
