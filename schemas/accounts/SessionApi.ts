import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, NeedsScope, OpenToCookies } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { UserId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Forbidden, RateLimited, Unauthorized } from "../core/Problem.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { Deleted } from "./AccountApi.ts"
import { Role } from "./User.ts"

/** Sessions of people in browsers. Source: contract/sessions. */

export const SignedIn = Schema.Struct({
  user: Schema.Struct({ id: UserId, email: Schema.String, name: Schema.String, role: Role }),
  scopes: Schema.Array(Schema.String),
  expiresAt: TimestampOfDate.annotate({ description: "The session ends then at the latest" })
}).annotate({ identifier: "Session", description: "The session of this browser" })

const NewSession = Schema.Struct({
  ticket: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(100, { expected: "at most 100 characters" })).annotate({
      description: "Of a login link, the part after `#`; without a key in `Authorization`"
    })
  )
}).annotate({ identifier: "NewSession" })

export const SessionToken = Schema.Struct({
  token: Schema.String.annotate({ description: "`sst_…`, for `Authorization: Bearer`" }),
  expiresAt: TimestampOfDate
}).annotate({ identifier: "SessionToken", description: "The session's rights, for scripts of the own pages" })

const Everywhere = {
  everywhere: Schema.optionalKey(
    Schema.Literals(["true", "false"]).annotate({
      default: "false",
      description: "`true`: all sessions of the user end, in every browser"
    })
  )
}

/** Keeps pages of other origins away, counts attempts by address, and takes a body that is not there for `{}`. */
export class SignIn extends HttpApiMiddleware.Service<SignIn>()("signalbox/accounts/SignIn", {
  error: [Forbidden.plain, RateLimited.plain]
}) {}

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.post("createSession", "/", {
      payload: NewSession,
      success: SignedIn.pipe(HttpApiSchema.status(201)),
      error: Unauthorized.plain
    })
      .middleware(SignIn)
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Sign in")
      .annotate(
        OpenApi.Description,
        "With an account key in `Authorization: Bearer`, or with the ticket of a login link, which works once. The " +
          "answer sets the cookie. Pages of other origins get 403."
      ),
    HttpApiEndpoint.get("readSession", "/", { success: SignedIn })
      .middleware(Authorization)
      .annotate(OpenApi.Summary, "Read the session of this browser"),
    HttpApiEndpoint.delete("deleteSession", "/", { query: Everywhere, success: Deleted })
      .middleware(Authorization)
      .annotate(OpenApi.Summary, "Sign out"),
    HttpApiEndpoint.post("createSessionToken", "/token", { success: SessionToken })
      .middleware(Authorization)
      .annotate(OpenApi.Summary, "Make a token for the own pages")
      .annotate(
        OpenApi.Description,
        "The token opens all endpoints as the session does, for 15 minutes, and ends with it. A token makes no other."
      )
  )
  .middleware(ErrorBoundary)
  .annotate(NeedsScope, "any")
  .annotate(OpenToCookies, true)
  .annotateMerge(OpenApi.annotations({ title: "Sessions", description: "Sessions of people in browsers." }))
  .prefix("/api/session") {}
