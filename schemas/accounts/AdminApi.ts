import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AdministratorsOnly, Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Deleted } from "./AccountApi.ts"
import { NewUser, User, UserChange } from "./User.ts"
import { Conflict, NotFound } from "../core/Problem.ts"

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
      success: User,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Read a user"),
    HttpApiEndpoint.patch("updateUser", "/users/:id", {
      params: { id: PathId },
      payload: UserChange,
      success: User,
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
      .annotate(OpenApi.Description, "Their keys stop working everywhere within a second.")
  )
  .annotate(AdministratorsOnly, true)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Administration", description: "For account keys of administrators." })
  )
  .prefix("/api/v1/admin") {}
