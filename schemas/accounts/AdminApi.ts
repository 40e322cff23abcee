import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { Deleted } from "./AccountApi.ts"
import { ManagedUser, NewUser, User, UserChange } from "./User.ts"
import { Conflict, NotFound } from "../core/Problem.ts"

const LoginLink = Schema.Struct({
  url: Schema.String.annotate({ description: "Shown now and never again; the ticket is behind `#`" }),
  expiresAt: TimestampOfDate
}).annotate({ identifier: "LoginLink", description: "Whoever opens it first is signed in as the user" })

/** Users, as administrators manage them. Source: contract/accounts#users. */
export class AdminApi extends HttpApiGroup.make("admin")
  .add(
    HttpApiEndpoint.post("createUser", "/users", {
      payload: NewUser,
      success: User.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a user"),
    HttpApiEndpoint.get("getUser", "/users/:id", {
      params: { id: PathId },
      success: ManagedUser,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Read a user"),
    HttpApiEndpoint.patch("updateUser", "/users/:id", {
      params: { id: PathId },
      payload: UserChange,
      success: ManagedUser,
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a user"),
    HttpApiEndpoint.delete("deleteUser", "/users/:id", {
      params: { id: PathId },
      success: Deleted,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotate(OpenApi.Summary, "Delete a user")
      .annotate(OpenApi.Description, "Their keys and sessions end everywhere within a second."),
    HttpApiEndpoint.post("createLoginLink", "/users/:id/login-link", {
      params: { id: PathId },
      success: LoginLink.pipe(HttpApiSchema.status(201)),
      error: NotFound.plain
    })
      .annotate(OpenApi.Summary, "Make a link that signs a user in")
      .annotate(
        OpenApi.Description,
        "For a person without a key: it works once, for 15 minutes. A user has at most 10; another one takes the place " +
          "of the oldest."
      )
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Administration", description: "For account keys of administrators." })
  )
  .prefix("/api/v1/admin") {}
