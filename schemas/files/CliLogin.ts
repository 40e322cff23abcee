import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, OpenApi } from "effect/http-api"
import {
  Authorization,
  CurrentKey,
  NeedsScope,
  OpenToCookies,
  OpenToRouterKeys
} from "../core/Authorization.ts"
import { Scopes } from "../core/Credential.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { JsonBody } from "../core/JsonBody.ts"
import {
  Conflict,
  Forbidden,
  NotFound,
  RateLimited,
  ServiceUnavailable,
  Unauthorized
} from "../core/Problem.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { DeviceName, DevicePlatform } from "./Device.ts"

/** A machine's command line gets a key by its owner's session. Source: contract/files#cli-login. */

const LoginToken = Schema.String.check(
  Schema.isMaxLength(100, { expected: "at most 100 characters" })
).annotate({ description: "Of `POST /api/cli/auth/init`: 22 letters and digits" })

const LoginDigits = Schema.String.annotate({
  description: "Four digits, which page and terminal show: they belong together where these are the same",
  examples: ["0417"]
})

const NewLogin = Schema.Struct({
  name: Schema.optionalKey(DeviceName.annotate({ description: "Of the machine", default: "Command line" })),
  platform: Schema.optionalKey(DevicePlatform.annotate({ default: "cli" }))
}).annotate({ identifier: "NewCliLogin" })
export type NewLogin = typeof NewLogin.Type

const BegunLogin = Schema.Struct({
  token: LoginToken,
  url: Schema.String.annotate({ description: "For the person, in a browser" }),
  expiresIn: Schema.Int.annotate({ description: "Seconds", examples: [600] }),
  digits: LoginDigits
}).annotate({ identifier: "BegunCliLogin" })
export type BegunLogin = typeof BegunLogin.Type

const PolledLogin = Schema.Union([
  Schema.Struct({ status: Schema.Literals(["pending", "expired"]) }),
  Schema.Struct({
    status: Schema.Literal("complete"),
    apiKey: Schema.String.annotate({ description: "An account key: shown now and never again" })
  })
]).annotate({ identifier: "PolledCliLogin" })
export type PolledLogin = typeof PolledLogin.Type

const AskedLogin = Schema.Struct({
  name: Schema.String,
  platform: DevicePlatform,
  digits: LoginDigits,
  /** of the session, and so the most that the key can have */
  scopes: Schema.Array(Schema.String).annotate({ description: "The session's: the key gets no more" }),
  expiresAt: TimestampOfDate
}).annotate({ identifier: "CliLogin", description: "A login that waits for a person" })
export type AskedLogin = typeof AskedLogin.Type

const ofToken = Schema.Struct({ token: LoginToken }).annotate({ identifier: "CliLoginToken" })

const unknown = "404 where the token is unknown or older than ten minutes, 409 where it was let in already."

/** Counts by address, and takes a body that is not there for `{}`. */
export class BeginsLogin extends HttpApiMiddleware.Service<BeginsLogin>()("signalbox/files/BeginsLogin", {
  error: [RateLimited.plain, ServiceUnavailable.plain]
}) {}

/** Keys get 401 before their body is looked at. A person sees what they let in; a key would let in more of its kind alone. */
export class SessionsOnly extends HttpApiMiddleware.Service<SessionsOnly, { requires: CurrentKey }>()(
  "signalbox/files/SessionsOnly",
  { error: Unauthorized.plain }
) {}

export class CliLoginApi extends HttpApiGroup.make("cliLogin")
  .add(
    HttpApiEndpoint.post("beginCliLogin", "/init", { payload: NewLogin, success: BegunLogin })
      .middleware(JsonBody)
      .middleware(BeginsLogin)
      .annotate(OpenApi.Summary, "Begin to log in a command line")
      .annotate(OpenApi.Description, "Without a key. Ten a minute from an address (429)."),
    HttpApiEndpoint.get("pollCliLogin", "/poll", {
      query: { token: LoginToken },
      success: PolledLogin,
      error: [Conflict.plain, RateLimited.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "Ask whether a person has let the command line in")
      .annotate(
        OpenApi.Description,
        "Without a key. The first poll after the person let it in makes the key; later ones, and unknown tokens, are `expired`."
      ),
    HttpApiEndpoint.post("readCliLogin", "/read", {
      payload: ofToken,
      success: AskedLogin,
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .middleware(SessionsOnly)
      .middleware(Authorization)
      .annotate(OpenApi.Summary, "Read what logs in, before letting it in")
      .annotate(OpenApi.Description, `By a session; a key gets 401. ${unknown}`),
    HttpApiEndpoint.post("completeCliLogin", "/complete", {
      payload: Schema.Struct({
        ...ofToken.fields,
        scopes: Schema.optionalKey(
          Scopes.annotate({ description: "No more than the session's, which are the default" })
        )
      }).annotate({ identifier: "CompletedCliLogin" }),
      success: Schema.Struct({ success: Schema.Literal(true) }).annotate({ identifier: "CliLoginSuccess" }),
      error: [Forbidden.plain, NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .middleware(SessionsOnly)
      .middleware(Authorization)
      .annotate(OpenApi.Summary, "Let a command line in")
      .annotate(
        OpenApi.Description,
        `By a session; a key gets 401. ${unknown} The machine becomes a device, which counts among the 100 of its user, as its key does (409).`
      )
  )
  .middleware(ErrorBoundary)
  .annotate(NeedsScope, "any")
  // They get 401 as all keys do.
  .annotate(OpenToRouterKeys, true)
  .annotate(OpenToCookies, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Login of command lines",
      description: "A key for a machine, by one's session."
    })
  )
  .prefix("/api/cli/auth") {}
