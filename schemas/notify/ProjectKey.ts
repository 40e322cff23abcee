import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven } from "../core/Noun.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Instant, TimestampOfDate } from "../core/Timestamp.ts"
import { ProjectId } from "./Project.ts"

export const ProjectKeyId = idSchema("pky", "project key")
const projectsMax = 100
const projectsExpected = `"all" or a list of 1 to ${projectsMax} ids or slugs`
const Projects = Schema.Union([Schema.Literal("all"), Schema.Array(line(1, 64))])
  .check(
    Schema.makeFilter(
      (value: "all" | ReadonlyArray<string>) =>
        value === "all" || (value.length >= 1 && value.length <= projectsMax),
      {
        expected: projectsExpected
      }
    )
  )
  .annotate({ description: `${projectsExpected}; all: later ones, too` })

const SendsPerMinute = Schema.NullOr(integer(1, 6_000)).annotate({
  description: "Sends in a minute, in place of 120"
})

/** A row of `project_keys`. Source: contract/notify#keys. */
export class ProjectKeyRow extends Model.Class<ProjectKeyRow>("ProjectKeyRow")({
  id: made(ProjectKeyId),
  user_id: hidden,
  name: given(Schema.String, line(1, 100)),
  prefix: Model.GeneratedByApp(Schema.String.annotate({ description: "The key's first 12 characters" })),
  /** null: all */
  projects: Model.FieldOnly(["select", "insert", "update"])(Schema.NullOr(Schema.Array(Schema.String))),
  expiresAt: Model.Field({
    select: Schema.NullOr(Schema.Date),
    insert: Schema.NullOr(Schema.Date),
    update: Schema.NullOr(Schema.Date),
    json: Schema.NullOr(TimestampOfDate),
    jsonCreate: Schema.optionalKey(Schema.NullOr(Instant)),
    jsonUpdate: Schema.optionalKey(Schema.NullOr(Instant))
  }),
  rateLimitPerMinute: maybeGiven(Schema.NullOr(Schema.Int), SendsPerMinute, { default: null }),
  createdAt: madeAt,
  /** SHA-256 of the key: lower-case hexadecimal in memory */
  hash: Model.Field({ select: Schema.String, insert: Schema.Uint8Array })
}) {}

const ProjectKey = Schema.Struct({
  ...ProjectKeyRow.json.fields,
  projects: Schema.Union([Schema.Literal("all"), Schema.Array(ProjectId)])
}).annotate({ identifier: "ProjectKey", description: "A project key" })
/** as JSON */
export type ProjectKey = typeof ProjectKey.Encoded

const CreatedProjectKey = Schema.Struct({
  ...ProjectKey.fields,
  key: Schema.String.annotate({ description: "The key itself (`prj_`): shown now and never again" })
}).annotate({ identifier: "CreatedProjectKey", description: "The new key" })
export type CreatedProjectKey = typeof CreatedProjectKey.Encoded

export const NewProjectKey = Schema.Struct({
  ...ProjectKeyRow.jsonCreate.fields,
  projects: Projects
}).annotate({
  identifier: "NewProjectKey"
})
export type NewProjectKey = typeof NewProjectKey.Type
export const ProjectKeyChange = Schema.Struct({
  ...ProjectKeyRow.jsonUpdate.fields,
  projects: Schema.optionalKey(Projects)
}).annotate({ identifier: "ProjectKeyChange" })
export type ProjectKeyChange = typeof ProjectKeyChange.Type

/** Keys of projects. Source: contract/notify#keys. */
export class ProjectKeysApi extends HttpApiGroup.make("projectKeys")
  .add(
    HttpApiEndpoint.get("listProjectKeys", "/project-keys", {
      success: Schema.Struct({ keys: Schema.Array(ProjectKey) }).annotate({
        identifier: "ProjectKeyList",
        description: "One's own, oldest first"
      })
    }).annotate(OpenApi.Summary, "List one's own project keys"),
    HttpApiEndpoint.post("createProjectKey", "/project-keys", {
      payload: NewProjectKey,
      success: CreatedProjectKey.pipe(HttpApiSchema.status(201)),
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a project key")
      .annotate(OpenApi.Description, "A user has at most 100 project keys (409)."),
    HttpApiEndpoint.patch("updateProjectKey", "/project-keys/:id", {
      params: { id: PathId },
      payload: ProjectKeyChange,
      success: ProjectKey,
      error: NotFound.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a project key"),
    HttpApiEndpoint.delete("revokeProjectKey", "/project-keys/:id", {
      params: { id: PathId },
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "RevokedProjectKey",
        description: "The key works nowhere within a second"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Revoke a project key")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Project keys", description: "Keys that send notifications." }))
  .prefix("/api/v1") {}
