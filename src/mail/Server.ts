import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import type { RoomServer } from "#src/Room.ts"
import { AppConfig } from "#src/Config.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import { Bounces } from "./bounces/Bounces.ts"
import * as BouncesRoutes from "./bounces/BouncesRoutes.ts"
import { ReturnPaths } from "./bounces/ReturnPaths.ts"
import { MailComposer } from "./composing/MailComposer.ts"
import { DomainSettings } from "./domains/DomainSettings.ts"
import * as DomainsRoutes from "./domains/DomainsRoutes.ts"
import { domainUpkeep, MailDomains } from "./domains/MailDomains.ts"
import { MailGates } from "./delivery/MailGates.ts"
import * as MailWorker from "./delivery/MailWorker.ts"
import { Emails } from "./emails/Emails.ts"
import * as EmailsRoutes from "./emails/EmailsRoutes.ts"
import { Inbox } from "./emails/Inbox.ts"
import { MailRetries } from "./emails/MailRetries.ts"
import { MailStats } from "./emails/MailStats.ts"
import * as OldMail from "./emails/OldMail.ts"
import * as SmtpListener from "./listener/SmtpListener.ts"
import { Submissions } from "./listener/Submissions.ts"
import { telemetry } from "./MailTelemetry.ts"
import { Mail } from "./sending/Mail.ts"
import { sendMailRoutes } from "./sending/SendMailRoutes.ts"
import { Suppressions } from "./suppressions/Suppressions.ts"
import * as SuppressionsRoutes from "./suppressions/SuppressionsRoutes.ts"
import { MailRoute } from "./transports/MailRoute.ts"
import * as Forwards from "./unsubscribe/Forwards.ts"
import * as UnsubscribeRoutes from "./unsubscribe/UnsubscribeRoutes.ts"
import { Unsubscribes } from "./unsubscribe/Unsubscribes.ts"
import { UnsubscribeTokens } from "./unsubscribe/UnsubscribeTokens.ts"

const settings = Layer.effect(
  DomainSettings,
  Effect.map(AppConfig, ({ mailDomains }) => mailDomains)
)

const services = Layer.mergeAll(
  Mail.layer,
  Emails.layer,
  Inbox.layer,
  Unsubscribes.layer,
  Bounces.layer,
  MailRetries.layer,
  MailStats.layer
).pipe(
  Layer.provideMerge(Layer.mergeAll(MailComposer.layer, MailGates.layer, MailDomains.layer)),
  Layer.provideMerge(MailRoute.layer),
  Layer.provideMerge(Layer.mergeAll(settings, Suppressions.layer, UnsubscribeTokens.layer, ReturnPaths.layer))
)

const endpoints = HttpApiBuilder.layer(MailRoomApi).pipe(
  Layer.provide([EmailsRoutes.layer, DomainsRoutes.layer, SuppressionsRoutes.layer, BouncesRoutes.layer])
)

const listener = SmtpListener.layer.pipe(Layer.provide(Submissions.layer))

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    MailWorker.layer,
    OldMail.layer,
    telemetry,
    domainUpkeep,
    UnsubscribeRoutes.layer,
    listener,
    Forwards.layer
  ).pipe(Layer.provide(services)),
  raw: RawRoutes.addRaw(sendMailRoutes).pipe(Layer.provide(services)),
  paths: [...UnsubscribeRoutes.paths]
}
