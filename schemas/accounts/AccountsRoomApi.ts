import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { JobsApi } from "../system/JobsApi.ts"
import { QuarantineApi } from "../system/QuarantineApi.ts"
import { SystemApi } from "../system/SystemApi.ts"
import { AccountApi } from "./AccountApi.ts"
import { AdminApi } from "./AdminApi.ts"
import { KeysApi } from "./ApiKey.ts"
import { SessionApi } from "./SessionApi.ts"

/** The endpoints that every server has: accounts and health. */
export class AccountsRoomApi extends HttpApi.make("signalbox")
  .add(AccountApi)
  .add(AdminApi)
  .add(KeysApi)
  .add(QuarantineApi)
  .add(SessionApi)
  .add(JobsApi)
  .add(SystemApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
