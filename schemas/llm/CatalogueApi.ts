import { HttpApi } from "effect/http-api"
import { CollectionsApi } from "./CollectionsApi.ts"
import { MarkupsApi } from "./MarkupsApi.ts"
import { ModelsApi } from "./ModelsApi.ts"

/** What can be asked, under which names, and at what price. */
export class CatalogueApi extends HttpApi.make("signalbox")
  .add(ModelsApi)
  .add(CollectionsApi)
  .add(MarkupsApi) {}
