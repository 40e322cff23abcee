import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { MailBouncesApi } from "./Bounce.ts"
import { MailDomainsApi } from "./Domain.ts"
import { EmailsApi, MailInboxApi } from "./Email.ts"
import { SuppressionsApi } from "./Suppression.ts"

/** The endpoints of mail that pass the Effect pipeline. */
export class MailRoomApi extends HttpApi.make("signalbox")
  .add(MailInboxApi)
  .add(MailBouncesApi)
  .add(MailDomainsApi)
  .add(SuppressionsApi)
  .add(EmailsApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
