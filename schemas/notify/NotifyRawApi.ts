import { HttpApi } from "effect/http-api"
import { AttachmentsApi } from "./AttachmentsApi.ts"
import { McpApi } from "./McpApi.ts"
import { SendApi } from "./SendApi.ts"

/** The endpoints of notifications that are served beside the Effect pipeline. */
export class NotifyRawApi extends HttpApi.make("signalbox").add(SendApi).add(McpApi).add(AttachmentsApi) {}
