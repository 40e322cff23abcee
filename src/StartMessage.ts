import { join } from "node:path"
import type { AdminKey } from "./accounts/FirstBoot.ts"
import type { Config } from "./Config.ts"

/** The message printed once the server is up: its address, the admin key once, and three commands to paste. */
export interface Started {
  readonly version: string
  /** how it is reached, without a trailing slash */
  readonly url: string
  readonly dataDir: string
  readonly adminKey: AdminKey
  /** for the administrator, on a terminal alone */
  readonly loginLink: string | undefined
  readonly elapsedMillis: number
  /** where models come from; undefined where the room is not served */
  readonly models: string | undefined
  /** notifications are served */
  readonly hasNotify: boolean
  /** the way of mail; undefined where the room is not served */
  readonly mail: string | undefined
  /** the stand-in for services behind channels; undefined: there is none */
  readonly channels: string | undefined
  /** why another process counts events; undefined: this one does */
  readonly standby: string | undefined
  /** a word about BASE_URL where it is missing behind a proxy */
  readonly proxy: string | undefined
}

/** `upstreamUrl` undefined: there is none but the sandbox. */
export const modelsOf = (upstreamUrl: string | undefined): string => {
  if (upstreamUrl === undefined)
    return "made up, by the built-in sandbox; sandbox/free costs nothing (UPSTREAM_URL names a real upstream)"
  // Without what may stand before the host: a name and a password.
  const { host, pathname } = new URL(upstreamUrl)
  return `those of ${host}${pathname}`
}

/** Relays are named by their host, without the password of `SMTP_URL`. */
export const mailOf = (config: Pick<Config, "mailDirect" | "mailListener" | "smtpServer">): string => {
  const { mailListener } = config
  const taken = mailListener === undefined ? "" : `; by SMTP it is taken at port ${mailListener.port}`
  return `${wayOf(config)}${taken}`
}

const wayOf = ({ mailDirect, smtpServer }: Pick<Config, "mailDirect" | "smtpServer">): string => {
  if (smtpServer !== undefined) return `goes out by ${smtpServer.host}, port ${smtpServer.port} (SMTP_URL)`
  return mailDirect === undefined
    ? "the built-in sandbox keeps all of it, and none leaves this server (SMTP_URL names a relay)"
    : `goes to the mail servers of its recipients, as ${mailDirect.hostname} (MAIL_TRANSPORT)`
}

/** Commands are for a POSIX shell: single quotes, with what a path may hold escaped. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** curl's own User-Agent is a bot's, and would not be counted. */
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

export const commandsOf = ({
  adminKey,
  dataDir,
  url
}: Started): readonly [create: string, send: string, read: string] => {
  const script = `JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")).adminKey`
  const key =
    adminKey._tag === "Nowhere"
      ? "KEY=sk_…"
      : `KEY=$(node -p ${shellQuoted(script)} ${shellQuoted(join(dataDir, "admin.json"))})`
  const create =
    `SITE=$(curl -s ${url}/api/v1/sites -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' ` +
    `-d '{"name":"Example","domain":"example.com"}' | grep -o 'st_[0-9A-Za-z]*'); echo $SITE`
  const send =
    `curl -si ${url}/api/event -A '${browser}' ` +
    String.raw`-d "{\"s\":\"$SITE\",\"k\":\"pageview\",\"u\":\"https://example.com/\"}"`
  const read = `curl -s "${url}/api/v1/sites/$SITE/stats?period=today" -H "Authorization: Bearer $KEY"`
  return [`${key}; ${create}`, send, read]
}

const placeOfKey = ({ adminKey, dataDir }: Started): string => {
  const file = join(dataDir, "admin.json")
  switch (adminKey._tag) {
    case "New":
      return `${adminKey.key}   (shown this once; also in ${file})`
    case "Kept":
      return `in ${file}`
    case "Nowhere":
      return `not known here; \`npm run -s signalbox -- admin key --new\` makes one and puts it into ${file}`
  }
}

const headline = ({ elapsedMillis, version }: Started): string =>
  `Signalbox ${version} is ready after ${(elapsedMillis / 1000).toFixed(1)} s`

/** Conditions out of the ordinary, and an address that may be new, by heading; every start's message has them. */
const notes = ({ channels, mail, proxy, standby }: Started): ReadonlyArray<string> => [
  ...(mail === undefined ? [] : [`  Mail       ${mail}`]),
  ...(channels === undefined ? [] : [`  Channels   ${channels}`]),
  ...(standby === undefined ? [] : [`  Analytics  standby: ${standby}`]),
  ...(proxy === undefined ? [] : [`  Base URL   ${proxy}`])
]

/** Only the first start shows how to begin. */
export const startMessage = (started: Started): string =>
  started.adminKey._tag === "New" ? firstMessage(started) : laterMessage(started)

const laterMessage = (started: Started): string =>
  [
    `${headline(started)}: ${started.url}/ (API docs: ${started.url}/docs)`,
    ...notes(started),
    `  Admin key  ${placeOfKey(started)}`
  ].join("\n")

/** The same for programs. Logs are kept and read by many: the key is not in it. */
export const startRecord = (
  started: Started
): { readonly message: string; readonly [name: string]: string } => {
  const { adminKey, channels, dataDir, mail, models, proxy, standby, url } = started
  return {
    message: headline(started),
    url,
    adminKey: adminKey._tag === "New" ? `made; in ${join(dataDir, "admin.json")}` : placeOfKey(started),
    ...(models === undefined ? {} : { models }),
    ...(mail === undefined ? {} : { mail }),
    ...(channels === undefined ? {} : { channels }),
    ...(standby === undefined ? {} : { analytics: `standby: ${standby}` }),
    ...(proxy === undefined ? {} : { baseUrl: proxy })
  }
}

const firstMessage = (started: Started): string => {
  const { hasNotify, loginLink, models, url } = started
  const [create, send, read] = commandsOf(started)
  return [
    "",
    headline(started),
    "",
    `  Console    ${url}/   (sign in with the admin key)`,
    ...(loginLink === undefined ? [] : [`  Sign in    ${loginLink}   (once, within 15 minutes)`]),
    `  API        ${url}/api/v1`,
    `  API docs   ${url}/docs`,
    `  Readiness  ${url}/readyz`,
    `  Metrics    ${url}/metrics`,
    ...(models === undefined ? [] : [`  Models     ${models}`]),
    ...(hasNotify
      ? [`  Notify     ${url}/?room=notify   (programs send to ${url}/api/v1/messages, agents to ${url}/mcp)`]
      : []),
    ...notes(started),
    `  Admin key  ${placeOfKey(started)}`,
    "",
    "Count a visit, in another terminal:",
    "",
    "  # create a site",
    `  ${create}`,
    "  # send an event",
    `  ${send}`,
    "  # read it back",
    `  ${read}`,
    ""
  ].join("\n")
}
