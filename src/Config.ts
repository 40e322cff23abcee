import { Context, Effect, Layer, Redacted, Result, Schema } from "effect"
import type { LogLevel } from "effect/LogLevel"
import { isIP } from "node:net"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { type TelegramSettings, telegramSettingsFrom } from "./notify/telegram/TelegramSettings.ts"
import { subjectFault } from "#streams/notify/channels/Vapid.ts"
import { EgressAllow } from "./infra/egress/EgressAllow.ts"
import { EnvironmentReader } from "./EnvironmentReader.ts"
import { type Limits, limits } from "./Limits.ts"
import { DomainSettings } from "./mail/domains/DomainSettings.ts"
import { type ListenerSettings, listenerSettingsFrom } from "./mail/listener/ListenerSettings.ts"
import { type SmtpServer, smtpServerOf } from "./mail/transports/SmtpUrl.ts"

/** A network whose `X-Forwarded-For` counts, as `net.BlockList.addSubnet` takes it. */
interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: "ipv4" | "ipv6"
}

/** `TRUST_PROXY` as the front takes it: a number of hops, or networks in CIDR notation. */
export const networksOf = (trust: Config["trustProxy"]): number | ReadonlyArray<string> =>
  typeof trust === "number" ? trust : trust.map(({ address, prefix }) => `${address}/${prefix}`)

const logFormats = ["auto", "text", "json"] as const

/** One of several processes that share agent sessions. */
export interface ClusterMember {
  readonly host: string
  readonly port: number
  /** `CLUSTER_SECRET`, which all of them prove to each other */
  readonly secret: Redacted.Redacted
  /** `CLUSTER_SILENT_SECONDS`: one that was silent for so long has died, and the others take its sessions over */
  readonly silentSeconds: number
}

/**
 * The decoded environment. Addresses that carry a password are redacted, so that no log or error prints them.
 * Source: contract/start#environment.
 */
export interface Config {
  /** `PORT`; 0 picks a free one */
  readonly port: number
  /** `HOST`, the address to listen on */
  readonly host: string
  /** `BASE_URL` without a trailing slash; unset: the address it listens on */
  readonly baseUrl: string | undefined
  /** `DATA_DIR`, absolute */
  readonly dataDir: string
  /** `DATABASE_URL`; unset: the embedded PostgreSQL */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** `CLICKHOUSE_URL`; unset: the embedded ClickHouse */
  readonly clickhouseUrl: Redacted.Redacted | undefined
  /** `REDIS_URL`; unset: rate buckets are this process's own */
  readonly redisUrl: Redacted.Redacted | undefined
  /** `CLUSTER_ADDRESS`, where other processes on this Postgres reach this one; unset: it is alone */
  readonly cluster: ClusterMember | undefined
  /** `UPSTREAM_URL`; unset: the built-in sandbox */
  readonly upstreamUrl: string | undefined
  readonly upstreamApiKey: Redacted.Redacted | undefined
  /** `UPSTREAM_COST_MAX_USD`: the most that is believed of a call whose model has no price in the upstream's list */
  readonly upstreamCostMaxUsd: number
  /** `ROOMS`; accounts are served in any case, since the other rooms need them */
  readonly rooms: ReadonlySet<string>
  readonly maxFileSizeBytes: number
  /** `BLOBS_URL`, the directory of the bytes of files, absolute; unset: `DATA_DIR/blobs` */
  readonly blobsDirectory: string | undefined
  /** `FILES_QUOTA`: the bytes that one user may have; unset: no limit */
  readonly filesQuotaBytes: number | undefined
  /** days for which the trash keeps shared files */
  readonly trashDays: number
  /** `FILES_MIN_FREE`: bytes that stay free on the disk of the blobs */
  readonly filesMinFreeBytes: number
  /** `ATTACHMENTS_DIR`, absolute; unset: with the blobs of all rooms; null (`off`): messages have no files */
  readonly attachmentsDirectory: string | null | undefined
  /** `ATTACHMENT_QUOTA`: the bytes that the files of one owner's messages may have */
  readonly attachmentQuotaBytes: number
  readonly maxAttachmentBytes: number
  /** `MESSAGE_DAYS`: messages, their pages and their files go after so long */
  readonly messageDays: number
  readonly logLevel: LogLevel
  /** `LOG_FORMAT`: lines for people, or JSON for programs; auto: for people on a terminal */
  readonly logFormat: (typeof logFormats)[number]
  /** `GEOIP_DB`, absolute path of an mmdb file */
  readonly geoipDb: string | undefined
  /** `TRUST_PROXY`: hops to count from the right of `X-Forwarded-For` (0: the header does not count), or networks */
  readonly trustProxy: number | ReadonlyArray<Network>
  /** `EGRESS_ALLOW`: hosts and networks that addresses of strangers may name, though they are not of the Internet */
  readonly egressAllow: EgressAllow
  /** `NOTIFY_SANDBOX`: auto is on without `TELEGRAM_BOT_TOKEN`; a port: on, there; an origin: that of one that runs alone */
  readonly notifySandbox: (typeof sandboxModes)[number] | number | { readonly origin: string }
  /** `MAIL_ON_UNKNOWN`: a mail whose last byte left and whose reply did not come is sent again, or held */
  readonly mailOnUnknown: (typeof unknownPolicies)[number]
  /** `MAIL_TRANSPORT`: the relay of `SMTP_URL`; where neither this nor the next is set, the sandbox */
  readonly smtpServer: SmtpServer | undefined
  /** the servers of the recipients themselves, to which this one is `MAIL_HOSTNAME`; their port is 25 where it is unset */
  readonly mailDirect: { readonly hostname: string; readonly port?: number } | undefined
  readonly mailDomains: DomainSettings["Service"]
  /** `MAIL_SMTP_PORT`; unset: no mail is taken by SMTP */
  readonly mailListener: ListenerSettings | undefined
  /** `TELEGRAM_BOT_TOKEN`, and `TELEGRAM_API_URL` at which its Bot API is; unset: the sandbox's, where that is on */
  readonly telegram: TelegramSettings | undefined
  /** `VAPID_SUBJECT`, at which push services reach the operator; unset: `BASE_URL`, if it is https */
  readonly vapidSubject: string | undefined
  readonly corsOrigins: ReadonlySet<string>
  /** `RATE_LIMIT_MODE`: the status of a refusal, 429 or (block) 403 */
  readonly rateLimitMode: "429" | "block"
  /** `RATE_PER_MINUTE_MAX`: requests a minute that a person may allow a key of their own; an administrator may allow more */
  readonly ratePerMinuteMax: number
  readonly otelEndpoint: string | undefined
  readonly limits: Limits
}

/** Everything that is wrong with the environment, one line a variable. The process exits with `exitCode`. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  faults: Schema.Array(Schema.Struct({ variable: Schema.String, fault: Schema.String }))
}) {
  /** EX_CONFIG of sysexits.h */
  readonly exitCode = 78
  override get message(): string {
    return ["The configuration is not valid:", ...this.faults.map((_) => `  ${_.variable} ${_.fault}`)].join(
      "\n"
    )
  }
}

const logLevels = ["All", "Trace", "Debug", "Info", "Warn", "Error", "Fatal", "None"] as const

const logLevelOf = (text: string): LogLevel | undefined =>
  logLevels.find(
    (level) => level.toLowerCase() === (text.toLowerCase() === "warning" ? "warn" : text.toLowerCase())
  )

/** `10.0.0.0/8`, `::1`; a bare address is a network of one. */
const networkOf = (text: string): Network | undefined => {
  const [address = "", bits, ...more] = text.split("/")
  const version = isIP(address)
  if (version === 0 || more.length > 0) return undefined
  const width = version === 4 ? 32 : 128
  if (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > width)) return undefined
  return {
    address,
    prefix: bits === undefined ? width : Number(bits),
    family: version === 4 ? "ipv4" : "ipv6"
  }
}

const trustProxyOf = (text: string): number | ReadonlyArray<Network> | undefined => {
  if (/^\d+$/.test(text)) return Number(text) <= 32 ? Number(text) : undefined
  const networks = text.split(",").map((part) => networkOf(part.trim()))
  const known = networks.filter((network) => network !== undefined)
  return known.length === networks.length ? known : undefined
}

const costMaxUsd = 10_000

const costOf = (text: string): number | undefined =>
  /^\d{1,5}(\.\d{1,12})?$/.test(text) && Number(text) <= costMaxUsd ? Number(text) : undefined

/** An origin as browsers send it: scheme, host, port, and nothing else. */
const originOf = (text: string): string | undefined => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.origin === text.replace(/\/$/, "").toLowerCase()
    ? url.origin
    : undefined
}

/** `10.0.0.5:7000`, `box-1.internal:7000`, `[fd00::5]:7000` */
const addressOf = (text: string): { readonly host: string; readonly port: number } | undefined => {
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,253})):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port < 1 || port > 65_535) return undefined
  return bracketed === undefined || isIP(bracketed) === 6 ? { host, port } : undefined
}

const clusterSecretCharacters = 32

/** An address without a secret would let any client that reaches it act for every user: it is a fault. */
const clusterOf = (read: EnvironmentReader): ClusterMember | undefined => {
  const address = read.parsed("CLUSTER_ADDRESS", addressOf, "takes an address like 10.0.0.5:7000")
  const secret = read.parsed(
    "CLUSTER_SECRET",
    (text) =>
      text.length < clusterSecretCharacters ? undefined : Redacted.make(text, { label: "CLUSTER_SECRET" }),
    `takes at least ${clusterSecretCharacters} characters`
  )
  const silentSeconds = read.integer("CLUSTER_SILENT_SECONDS", {
    minimum: 3,
    maximum: 300,
    otherwise: limits.clusterSilentSeconds
  })
  const isAsked = read.text("CLUSTER_ADDRESS") !== undefined
  const needs = (variable: string, by: string) => {
    if (read.text(variable) === undefined)
      read.faults.push({ variable, fault: `has to be set where ${by} is` })
  }
  if (isAsked) {
    needs("CLUSTER_SECRET", "CLUSTER_ADDRESS")
    needs("DATABASE_URL", "CLUSTER_ADDRESS")
  } else if (read.text("CLUSTER_SECRET") !== undefined) needs("CLUSTER_ADDRESS", "CLUSTER_SECRET")
  return address === undefined || secret === undefined ? undefined : { ...address, secret, silentSeconds }
}

/** The time limits of models, which differ from one upstream to the next. */
const waitsOf = (read: EnvironmentReader): Partial<Limits> => {
  const millis = (variable: string, otherwise: number): number =>
    read.integer(variable, { minimum: 1, maximum: 3_600, otherwise: otherwise / 1_000 }) * 1_000
  const firstTokenMillis = millis("FIRST_TOKEN_SECONDS", limits.firstTokenMillis)
  return {
    upstreamConnectMillis: millis("UPSTREAM_CONNECT_SECONDS", limits.upstreamConnectMillis),
    firstTokenMillis,
    lastFirstTokenMillis: millis(
      "LAST_FIRST_TOKEN_SECONDS",
      Math.max(firstTokenMillis, limits.lastFirstTokenMillis)
    ),
    streamSilenceMillis: millis("STREAM_SILENCE_SECONDS", limits.streamSilenceMillis),
    plainAnswerMillis: millis("PLAIN_ANSWER_SECONDS", limits.plainAnswerMillis)
  }
}

const filesLimitsOf = (read: EnvironmentReader): Partial<Limits> => ({
  filesRatePerHour: read.integer("FILES_RATE_PER_HOUR", {
    minimum: 1,
    maximum: 1_000_000_000,
    otherwise: limits.filesRatePerHour
  }),
  sharedFileBytes: read.size("FILES_MAX_SIZE", limits.sharedFileBytes)
})

const sandboxModes = ["auto", "on", "off"] as const

const sandboxOf = (text: string): Config["notifySandbox"] | undefined => {
  const mode = sandboxModes.find((one) => one === text)
  const [, origin, digits = text] = /^(http:\/\/127\.0\.0\.1:(\d{1,5}))\/?$/.exec(text) ?? []
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0
  if (mode !== undefined || port < 1 || port > 65_535) return mode
  return origin === undefined ? port : { origin }
}

/** Others that may be asked, or may ask. */
const openingsOf = (
  read: EnvironmentReader
): Pick<Config, "corsOrigins" | "egressAllow" | "notifySandbox"> => ({
  egressAllow: EgressAllow.from(read),
  notifySandbox:
    read.parsed(
      "NOTIFY_SANDBOX",
      sandboxOf,
      "takes auto, on, off, a port to be on at, or the address of one that runs alone, like http://127.0.0.1:9001"
    ) ?? "auto",
  corsOrigins: read.list("CORS_ORIGINS", originOf, "takes origins like https://example.com", [])
})

/**
 * Decodes an environment, relative paths against `directory`, for a server that has the rooms of these `names`. A variable that is empty counts as unset.
 * Fails with every fault at once.
 */
export const decode = (
  environment: Readonly<Record<string, string | undefined>>,
  directory: string,
  names: ReadonlyArray<string>
): Effect.Effect<Config, ConfigInvalid> => {
  const read = new EnvironmentReader(environment)
  const config: Config = {
    port: read.integer("PORT", { minimum: 0, maximum: 65_535, otherwise: 8080 }),
    host: read.matching("HOST", /^[A-Za-z0-9.:_-]{1,253}$/, "is not a host name or address") ?? "127.0.0.1",
    baseUrl: read.url("BASE_URL", ["http:", "https:"])?.replace(/\/+$/, ""),
    dataDir: resolve(directory, read.text("DATA_DIR") ?? "./.data"),
    databaseUrl: read.secretUrl("DATABASE_URL", ["postgres:", "postgresql:"]),
    clickhouseUrl: read.secretUrl("CLICKHOUSE_URL", ["http:", "https:"]),
    redisUrl: read.secretUrl("REDIS_URL", ["redis:", "rediss:"]),
    cluster: clusterOf(read),
    upstreamUrl: read.url("UPSTREAM_URL", ["http:", "https:"])?.replace(/\/+$/, ""),
    upstreamApiKey: read.secret("UPSTREAM_API_KEY"),
    upstreamCostMaxUsd:
      read.parsed("UPSTREAM_COST_MAX_USD", costOf, `takes USD from 0 to ${costMaxUsd}`) ??
      limits.upstreamCostMaxUsd,
    rooms: read.list(
      "ROOMS",
      (name) => names.find((room) => room === name),
      `takes ${names.join(", ")}`,
      names
    ),
    ...filesOf(read),
    ...attachmentsOf(read, directory),
    logLevel: read.parsed("LOG_LEVEL", logLevelOf, `takes ${logLevels.join(", ").toLowerCase()}`) ?? "Info",
    logFormat: logFormatOf(read),
    geoipDb: read.file("GEOIP_DB", directory),
    trustProxy:
      read.parsed(
        "TRUST_PROXY",
        trustProxyOf,
        "takes a number of hops (0 to 32) or networks like 10.0.0.0/8,::1"
      ) ?? 0,
    ...openingsOf(read),
    ...mailOf(read),
    mailListener: listenerSettingsFrom(read, directory),
    telegram: telegramSettingsFrom(read),
    vapidSubject: vapidSubjectOf(read),
    rateLimitMode:
      read.parsed("RATE_LIMIT_MODE", (_) => modes.find((mode) => mode === _), "takes 429 or block") ?? "429",
    ratePerMinuteMax: read.integer("RATE_PER_MINUTE_MAX", {
      minimum: 1,
      maximum: 1_000_000,
      otherwise: limits.ratePerMinuteMax
    }),
    otelEndpoint: read.url("OTEL_EXPORTER_OTLP_ENDPOINT", ["http:", "https:"])?.replace(/\/+$/, ""),
    limits: { ...limits, ...waitsOf(read), ...filesLimitsOf(read), ...mailLimitsOf(read) }
  }
  return read.faults.length === 0
    ? Effect.succeed(config)
    : Effect.fail(new ConfigInvalid({ faults: read.faults }))
}

const filesOf = (read: EnvironmentReader) => ({
  maxFileSizeBytes: read.size("MAX_FILE_SIZE", limits.fileBytes),
  blobsDirectory: read.parsed("BLOBS_URL", directoryOf, "takes a directory like file:///srv/blobs"),
  trashDays: read.integer("TRASH_DAYS", { minimum: 0, maximum: 36_500, otherwise: limits.trashDays }),
  filesQuotaBytes: read.text("FILES_QUOTA") === undefined ? undefined : read.size("FILES_QUOTA", 0),
  filesMinFreeBytes: read.size("FILES_MIN_FREE", limits.filesMinFreeBytes)
})

const unknownPolicies = ["resend", "hold"] as const

const mailTransports = ["sandbox", "smtp", "direct"] as const

/** Mail goes to the relay where one is named, unless `MAIL_TRANSPORT` says otherwise. */
const mailWayOf = (
  read: EnvironmentReader,
  hostname: string | undefined
): Pick<Config, "mailDirect" | "smtpServer"> => {
  const url = read.text("SMTP_URL")
  const server = url === undefined ? undefined : smtpServerOf(url)
  if (server !== undefined && Result.isFailure(server)) read.faults.push(server.failure)
  const transport = read.parsed(
    "MAIL_TRANSPORT",
    (text) => mailTransports.find((name) => name === text),
    "takes sandbox, smtp or direct"
  )
  if (transport === "smtp" && url === undefined)
    read.faults.push({ variable: "SMTP_URL", fault: "has to be set where MAIL_TRANSPORT is smtp" })
  if (transport === "direct" && read.text("MAIL_HOSTNAME") === undefined)
    read.faults.push({ variable: "MAIL_HOSTNAME", fault: "has to be set where MAIL_TRANSPORT is direct" })
  const isRelay = transport === undefined || transport === "smtp"
  return {
    smtpServer: isRelay && server !== undefined ? Result.getOrUndefined(server) : undefined,
    mailDirect: transport === "direct" && hostname !== undefined ? { hostname } : undefined
  }
}

const mailOf = (
  read: EnvironmentReader
): Pick<Config, "mailDirect" | "mailDomains" | "mailOnUnknown" | "smtpServer"> => {
  const mailDomains = DomainSettings.from(read)
  return {
    ...mailWayOf(read, mailDomains.hostname),
    mailDomains,
    mailOnUnknown:
      read.parsed(
        "MAIL_ON_UNKNOWN",
        (text) => unknownPolicies.find((policy) => policy === text),
        "takes resend or hold"
      ) ?? "resend"
  }
}

const mailLimitsOf = (read: EnvironmentReader): Partial<Limits> => {
  const count = (variable: string, otherwise: number): number =>
    read.integer(variable, { minimum: 1, maximum: 1_000_000_000, otherwise })
  return {
    mailRatePerMinute: count("MAIL_RATE_PER_MINUTE", limits.mailRatePerMinute),
    mailPerDay: count("MAIL_PER_DAY", limits.mailPerDay),
    mailRetryHours: count("MAIL_RETRY_HOURS", limits.mailRetryHours)
  }
}

const attachmentsOf = (read: EnvironmentReader, directory: string) => {
  const place = read.text("ATTACHMENTS_DIR")
  return {
    attachmentsDirectory:
      place === undefined ? undefined : place.toLowerCase() === "off" ? null : resolve(directory, place),
    attachmentQuotaBytes: read.size("ATTACHMENT_QUOTA", limits.attachmentQuotaBytes),
    maxAttachmentBytes: read.size("MAX_ATTACHMENT_SIZE", limits.attachmentBytes),
    messageDays: read.integer("MESSAGE_DAYS", {
      minimum: 1,
      maximum: 36_500,
      otherwise: limits.messageDays
    })
  }
}

const logFormatOf = (read: EnvironmentReader): Config["logFormat"] =>
  read.parsed(
    "LOG_FORMAT",
    (text) => logFormats.find((format) => format === text),
    "takes auto, text or json"
  ) ?? "auto"

const vapidSubjectOf = (read: EnvironmentReader): string | undefined => {
  const subject = read.text("VAPID_SUBJECT")
  const fault = subject === undefined ? undefined : subjectFault(subject)
  if (fault !== undefined)
    read.faults.push({ variable: "VAPID_SUBJECT", fault: fault.replace("expected", "takes") })
  return subject
}

const directoryOf = (text: string): string | undefined => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isDirectory = url?.protocol === "file:" && url.hostname === "" && url.pathname !== "/"
  return isDirectory && !/%2f|%00/i.test(url.pathname) ? fileURLToPath(url) : undefined
}

const modes = ["429", "block"] as const

/** The changes of a test: single values, and single limits. */
export type ConfigChanges = Partial<Omit<Config, "limits">> & { readonly limits?: Partial<Limits> }

export class AppConfig extends Context.Service<AppConfig, Config>()("signalbox/Config") {
  /** From the environment of this process, for a server that has these rooms. */
  static readonly layerFor = (
    rooms: ReadonlyArray<{ readonly name: string }>
  ): Layer.Layer<AppConfig, ConfigInvalid> =>
    Layer.effect(
      AppConfig,
      Effect.suspend(() =>
        decode(
          process.env,
          process.cwd(),
          rooms.map(({ name }) => name)
        )
      )
    )

  /** Defaults with changes, for tests and benches: nothing is read from the environment, and no room is named. */
  static readonly layerOf = (changes: ConfigChanges): Layer.Layer<AppConfig> =>
    Layer.effect(
      AppConfig,
      Effect.map(Effect.orDie(decode({}, process.cwd(), [])), (defaults) => ({
        ...defaults,
        ...changes,
        limits: { ...defaults.limits, ...changes.limits }
      }))
    )
}
