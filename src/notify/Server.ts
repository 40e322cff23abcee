import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import { AttachmentBlobs } from "./attachments/AttachmentBlobs.ts"
import { Attachments, upkeep as attachmentUpkeep } from "./attachments/Attachments.ts"
import { attachmentRoutes } from "./attachments/AttachmentsRoutes.ts"
import { ChannelGates } from "./delivery/ChannelGates.ts"
import { Deliveries, endedDeliveries } from "./delivery/Deliveries.ts"
import * as DeliveriesRoutes from "./delivery/DeliveriesRoutes.ts"
import * as DeliveryWorker from "./delivery/DeliveryWorker.ts"
import { VapidKey } from "./delivery/VapidKey.ts"
import * as Digests from "./digests/Digests.ts"
import { HeldDeliveries } from "./digests/HeldDeliveries.ts"
import { Holds } from "./digests/Holds.ts"
import { Links } from "./Links.ts"
import { MessageLog } from "./log/MessageLog.ts"
import * as MessagesRoutes from "./log/MessagesRoutes.ts"
import * as OldMessages from "./log/OldMessages.ts"
import { notifyMcpRoutes } from "./mcp/NotifyMcp.ts"
import { telemetry } from "./NotifyTelemetry.ts"
import { ProjectKeyDirectory, ProjectKeys } from "./projects/ProjectKeys.ts"
import { digestPageRoutes } from "./pages/DigestPagesRoutes.ts"
import { messagePageRoutes } from "./pages/MessagePagesRoutes.ts"
import * as ProjectKeysRoutes from "./projects/ProjectKeysRoutes.ts"
import { ProjectDirectory, Projects } from "./projects/Projects.ts"
import * as ProjectsRoutes from "./projects/ProjectsRoutes.ts"
import { Sending } from "./sending/Sending.ts"
import { sendRoutes } from "./sending/SendRoutes.ts"
import { NotifySandbox } from "./sandbox/NotifySandbox.ts"
import * as Poller from "./telegram/Poller.ts"
import * as Replies from "./telegram/Replies.ts"
import { TelegramCodes, telegramSweep } from "./telegram/TelegramCodes.ts"
import * as TelegramRoutes from "./telegram/TelegramRoutes.ts"
import { TelegramBot } from "./telegram/TelegramBot.ts"
import { Channels } from "./subscribers/Channels.ts"
import { ChannelTests } from "./subscribers/ChannelTests.ts"
import { Confirmations } from "./subscribers/Confirmations.ts"
import { Joining } from "./subscribers/Joining.ts"
import * as SettingsRoutes from "./subscribers/SettingsRoutes.ts"
import * as SubscriberSweep from "./subscribers/SubscriberSweep.ts"
import { Subscribers } from "./subscribers/Subscribers.ts"
import * as SubscriberPagesRoutes from "./subscribers/SubscriberPagesRoutes.ts"
import * as SubscribersRoutes from "./subscribers/SubscribersRoutes.ts"
import * as SubscriberTokens from "./subscribers/SubscriberTokens.ts"

/** Their own side: joining, settings, pages. */
const ofSubscribers = Layer.mergeAll(
  Joining.layer,
  Subscribers.layer,
  ChannelTests.layer,
  SubscriberTokens.authorization,
  TelegramCodes.layer
).pipe(
  Layer.provideMerge(Layer.merge(Channels.layer, SubscriberTokens.SubscriberTokens.layer)),
  Layer.provideMerge(Confirmations.layer),
  Layer.provideMerge(VapidKey.layer)
)

const services = Layer.mergeAll(
  Sending.layer,
  MessageLog.layer,
  Deliveries.layer,
  Digests.Digests.layer,
  ofSubscribers
).pipe(
  Layer.provideMerge(Attachments.layer),
  Layer.provideMerge(AttachmentBlobs.layer),
  Layer.provideMerge(TelegramBot.layer),
  Layer.provideMerge(ProjectKeys.layer),
  Layer.provideMerge(Projects.layer),
  Layer.provideMerge(Layer.merge(Holds.layer, HeldDeliveries.layer)),
  Layer.provideMerge(
    Layer.mergeAll(
      ProjectDirectory.layer,
      ProjectKeyDirectory.layer,
      Links.layer,
      ChannelGates.layer,
      NotifySandbox.layer,
      RawServerUrl.layer
    )
  )
)

const endpoints = HttpApiBuilder.layer(NotifyRoomApi).pipe(
  Layer.provide([
    ProjectsRoutes.layer,
    ProjectKeysRoutes.layer,
    MessagesRoutes.layer,
    DeliveriesRoutes.layer,
    SubscribersRoutes.layer,
    TelegramRoutes.layer,
    SettingsRoutes.joining,
    SettingsRoutes.settings
  ])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    DeliveryWorker.layer,
    Poller.layer,
    Replies.layer,
    telegramSweep,
    endedDeliveries,
    Digests.sweeps,
    SubscriberPagesRoutes.layer,
    SubscriberSweep.layer,
    attachmentUpkeep,
    OldMessages.layer,
    telemetry,
    RawServerUrl.listening,
    Sweep.layer("projects", "deleted_at"),
    Sweep.layer("project_keys", "revoked_at")
  ).pipe(Layer.provide(services)),
  raw: Layer.mergeAll(
    RawRoutes.addRaw(attachmentRoutes),
    RawRoutes.addRaw(sendRoutes),
    RawRoutes.addRaw(messagePageRoutes),
    RawRoutes.addRaw(digestPageRoutes),
    RawRoutes.addRaw(notifyMcpRoutes)
  ).pipe(Layer.provide(services)),
  // A raw route beside ordinary ones of the same path.
  paths: [...SubscriberPagesRoutes.paths, ["POST", "/api/v1/messages"]]
}
