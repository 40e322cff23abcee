import { Effect, type Scope } from "effect"
import { makeSmtpRelay } from "#src/mail/transports/SmtpRelay.ts"
import { type SmtpLimits, smtpLimits } from "#src/mail/transports/SmtpLimits.ts"
import type { SmtpServer } from "#src/mail/transports/SmtpUrl.ts"
import type { Handover, Transport } from "#src/mail/transports/Transport.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { type Sink, type SinkScript, startSink } from "#test/mail/SmtpSink.ts"

export const text = "Subject: hello\r\n\r\n.first\r\n..second\r\nlast\r\n"

/** A hand-over that says yes to its end. */
export const handoverOf = (changes: Partial<Handover> = {}): Handover => ({
  deliveryId: "dlv_1",
  owner: "ada",
  messageId: "<eml_1@sender.test>",
  envelope: { from: "from@sender.test", to: "to@recipient.test" },
  message: [Buffer.from(text)],
  ending: Effect.succeed(true),
  ...changes
})

interface RelayChanges {
  readonly server?: Partial<SmtpServer>
  readonly limits?: Partial<SmtpLimits>
  readonly certificates?: string
}

/** The transport for a server on a port of this machine, in plain text unless changed. */
export const relayTo = (
  port: number,
  { limits = {}, server = {}, ...changes }: RelayChanges = {}
): Effect.Effect<Transport, never, Scope.Scope> =>
  makeSmtpRelay({
    server: { host: "127.0.0.1", port, tls: "none", login: null, ...server },
    hostname: "client.test",
    limits: { ...smtpLimits, ...limits },
    ...changes
  })

/** A sink, and the transport to it. */
export const stage = (
  script: SinkScript = {},
  changes: RelayChanges = {}
): Effect.Effect<{ readonly sink: Sink; readonly relay: Transport }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sink = yield* startSink(script)
    return { sink, relay: yield* relayTo(sink.port, changes) }
  })

export const soon = (what: string, is: () => boolean): Effect.Effect<void> =>
  Effect.orDie(eventually(what, Effect.sync(is)))
