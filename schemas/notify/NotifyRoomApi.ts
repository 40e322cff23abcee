import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { DeliveriesApi } from "./DeliveryApi.ts"
import { MessagesApi } from "./Message.ts"
import { ProjectsApi } from "./Project.ts"
import { ProjectKeysApi } from "./ProjectKey.ts"
import { JoiningApi, SettingsApi } from "./Settings.ts"
import { SubscribersApi } from "./Subscriber.ts"
import { TelegramApi } from "./Telegram.ts"

/** The endpoints of notifications that pass the Effect pipeline. */
export class NotifyRoomApi extends HttpApi.make("signalbox")
  .add(ProjectsApi)
  .add(ProjectKeysApi)
  .add(MessagesApi)
  .add(DeliveriesApi)
  .add(SubscribersApi)
  .add(JoiningApi)
  .add(SettingsApi)
  .add(TelegramApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
