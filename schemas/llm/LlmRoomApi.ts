import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { CollectionsApi } from "./Collection.ts"
import { CreditsApi } from "./CreditsApi.ts"
import { LedgerApi } from "./LedgerApi.ts"
import { MarkupsApi } from "./MarkupsApi.ts"
import { ModelsApi } from "./ModelsApi.ts"
import { PlansApi } from "./Plan.ts"
import { SubscriptionsApi } from "./Subscription.ts"
import { UsageApi } from "./UsageApi.ts"

/** The endpoints of the model router that pass the Effect pipeline. */
export class LlmRoomApi extends HttpApi.make("signalbox")
  .add(ModelsApi)
  .add(CollectionsApi)
  .add(MarkupsApi)
  .add(CreditsApi)
  .add(PlansApi)
  .add(SubscriptionsApi)
  .add(LedgerApi)
  .add(UsageApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
