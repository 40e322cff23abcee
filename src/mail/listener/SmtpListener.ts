import { hostname } from "node:os"
import type { AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { Effect, Layer, Schedule, Schema, type Scope } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { type ListenerSettings, readCertificate } from "./ListenerSettings.ts"
import { SmtpClients } from "./SmtpClients.ts"
import { makeHandlers } from "./SmtpHandlers.ts"

/** The port of `MAIL_SMTP_PORT` cannot be had. */
class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", { problem: Schema.String }) {
  override get message(): string {
    return `${this.problem}: another process may have the port. MAIL_SMTP_PORT chooses another`
  }
}

/**
 * Takes mail by SMTP where `MAIL_SMTP_PORT` is set: mail to return paths from everybody, and submissions of those who log
 * in. Source: contract/mail#smtp, RFC 5321, RFC 6409.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const { host, mailListener } = config
    if (mailListener === undefined) return
    const port = yield* makeListener(config, mailListener)
    yield* Effect.logInfo("Mail is taken by SMTP").pipe(Effect.annotateLogs({ host, port }))
  })
)

/** Answers its port. */
export const makeListener = Effect.fnUntraced(function* (config: Config, settings: ListenerSettings) {
  const { host, limits } = config
  const clients: SmtpClients = new SmtpClients(limits, () => server)
  // Without a certificate of its own the library offers one whose key is public.
  const disabled = settings.certificate === undefined ? [...never, "STARTTLS"] : never
  const handlers = yield* makeHandlers(clients, disabled)
  const options = { ...optionsOf(config, settings, clients), disabledCommands: [...disabled] }
  const server: SMTPServer = new SMTPServer({ ...options, ...handlers.options })
  // Of a client that breaks off, or whose handshake fails.
  yield* Effect.acquireRelease(
    Effect.sync(() => server.on("error", ignore)),
    () => Effect.sync(() => clients.close())
  )
  yield* SampledMetrics.register([
    [
      "signalbox_mail_smtp_connections",
      "Clients that are connected to hand over mail",
      () => clients.connected
    ]
  ])
  const port = yield* listen(server, settings.port, host)
  yield* Effect.addFinalizer(() => drain(server, clients, handlers.stop, limits.drainMillis))
  yield* renewing(server, settings, limits.mailSmtpCertificateMillis)
  return port
})

const ignore = (): void => undefined

/** XCLIENT and XFORWARD would let clients name another address than theirs; the others are jokes of old. */
const never = ["XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"]

const optionsOf = (
  { limits, mailDomains }: Config,
  { certificate }: ListenerSettings,
  clients: SmtpClients
): SMTPServerOptions => ({
  name: mailDomains.hostname ?? hostname(),
  heloResponse: "%s",
  disableReverseLookup: true,
  ...(certificate === undefined ? {} : readCertificate(certificate)),
  minVersion: "TLSv1.2",
  authMethods: ["PLAIN", "LOGIN"],
  authOptional: true,
  // SmtpHandlers.ts opens AUTH to those on loopback and over TLS alone.
  allowInsecureAuth: true,
  hideSMTPUTF8: true,
  size: limits.mailBytes,
  rejectOversized: true,
  maxRecipients: recipientsMax,
  maxClients: limits.mailSmtpConnections,
  maxCommandLength: commandLengthMax,
  socketTimeout: limits.mailSmtpIdleMillis,
  logger: commandsTo(clients)
})

/** As `POST /send` takes them; clients send the others in another transaction. */
const recipientsMax = 50

/** RFC 5321, 4.5.3.1.4 has 512; a login with a key, in Base64, is shorter. */
const commandLengthMax = 1_024

/** The library tells its logger alone of every command. Nothing is written: a command may carry a key. */
const commandsTo = (clients: SmtpClients): NonNullable<Exclude<SMTPServerOptions["logger"], boolean>> => ({
  trace: ignore,
  debug: (entry: unknown) => {
    if (isCommand(entry)) clients.commanded(entry.cid)
  },
  info: ignore,
  warn: ignore,
  error: ignore,
  fatal: ignore
})

const isCommand = (entry: unknown): entry is { readonly cid: string } =>
  typeof entry === "object" &&
  entry !== null &&
  "tnx" in entry &&
  entry.tnx === "command" &&
  "cid" in entry &&
  typeof entry.cid === "string"

const listen = (server: SMTPServer, port: number, host: string): Effect.Effect<number, ListenFailed> =>
  Effect.callback((resume) => {
    const fail = (error: Error): void => resume(Effect.fail(new ListenFailed({ problem: error.message })))
    server.server.once("error", fail)
    server.listen(port, host, () => {
      server.server.off("error", fail)
      resume(Effect.succeed((server.server.address() as AddressInfo).port))
    })
  })

/** How often it is looked whether all clients have gone. */
const lookEveryMillis = 50

/** Takes no new clients and no new messages; those that are being handed over are taken. */
const drain = (
  server: SMTPServer,
  clients: SmtpClients,
  stop: () => void,
  drainMillis: number
): Effect.Effect<void> =>
  Effect.gen(function* () {
    stop()
    server.server.close()
    const deadline = performance.now() + drainMillis
    while (clients.dismissAll(false) && performance.now() < deadline) yield* Effect.sleep(lookEveryMillis)
    clients.dismissAll(true)
  })

/** Certificates are renewed every few weeks. One that cannot be read leaves the one before. */
const renewing = (
  server: SMTPServer,
  { certificate }: ListenerSettings,
  everyMillis: number
): Effect.Effect<unknown, never, Scope.Scope> => {
  if (certificate === undefined) return Effect.void
  const renew = Effect.try({
    try: () => server.updateSecureContext(readCertificate(certificate)),
    catch: (error) => (error instanceof Error ? error.message : String(error))
  }).pipe(
    Effect.catch((problem) =>
      Effect.annotateLogs(Effect.logWarning("The certificate for mail by SMTP could not be read again"), {
        problem
      })
    )
  )
  return Effect.forkScoped(Effect.repeat(Effect.delay(renew, everyMillis), Schedule.forever))
}
