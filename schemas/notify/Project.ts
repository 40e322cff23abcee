import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

export const ProjectId = idSchema("pjt", "project")
export const slugLengthMax = 63

const slugExpected = "1 to 63 lower-case letters, digits and hyphens, the first no hyphen"
const Slug = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,62}$/u, { expected: slugExpected })
).annotate({ description: "Its name in requests, unique among the owner's projects", examples: ["backups"] })

const Description = Schema.String.check(
  Schema.isMaxLength(500, { expected: "text of at most 500 characters" }),
  // oxlint-disable-next-line no-control-regex
  Schema.isPattern(/^[^\u0000-\u0008\u000b-\u001f\u007f]*$/u, { expected: "text without control characters" })
)

const Joining = Schema.Literals(["link", "closed"]).annotate({
  description: "`link`: who has the join link can subscribe; `closed`: the link opens nothing"
})

/** A row of `projects`. Source: contract/notify#projects. */
export class ProjectRow extends Model.Class<ProjectRow>("ProjectRow")({
  id: made(ProjectId),
  user_id: hidden,
  slug: maybeGiven(Schema.String, Slug, { description: "Made from the name where it is absent" }),
  name: given(Schema.String, line(1, 100)),
  description: maybeGiven(Schema.String, Description, { default: "" }),
  joining: maybeGiven(Joining, Joining, { default: "link" }),
  createdAt: madeAt,
  join_generation: Model.FieldOnly(["select", "insert", "update"])(Schema.Int),
  /** SHA-256 of the join link's token: lower-case hexadecimal in memory */
  join_hash: Model.Field({ select: Schema.String, insert: Schema.Uint8Array, update: Schema.Uint8Array })
}) {}

const CoveredProject = Schema.Struct({
  id: ProjectId,
  slug: Schema.String,
  name: Schema.String,
  description: Schema.String
}).annotate({ identifier: "CoveredProject", description: "A project as keys that cover it see it" })
export type CoveredProject = typeof CoveredProject.Encoded

export const Project = Schema.Struct({
  ...ProjectRow.json.fields,
  subscribers: Schema.Int.annotate({ description: "Those who get its messages, muted ones included" }),
  joinUrl: Schema.NullOr(Schema.String).annotate({
    description: "The join link; null where joining is closed"
  })
}).annotate({ identifier: "Project", description: "A project as its owner sees it" })
/** as JSON */
export type Project = typeof Project.Encoded

export const NewProject = shape("NewProject", ProjectRow.jsonCreate)
export type NewProject = typeof NewProject.Type
export const ProjectChange = shape("ProjectChange", ProjectRow.jsonUpdate)
export type ProjectChange = typeof ProjectChange.Type

/** The projects that a project key covers, and the key. */
export const CoveredProjects = Schema.Struct({
  projects: Schema.Array(CoveredProject),
  key: Schema.Struct({
    name: Schema.String,
    prefix: Schema.String,
    expiresAt: Schema.NullOr(Timestamp)
  }).annotate({ description: "The project key that asked" })
})

export type CoveredProjects = typeof CoveredProjects.Type

const ProjectList = Schema.Union([
  CoveredProjects,
  Schema.Struct({ projects: Schema.Array(Project) })
]).annotate({
  identifier: "ProjectList",
  description: "With a project key those it covers, and the key; with an account key one's own. By slug."
})

const one = { params: { id: PathId.annotate({ description: "Id or slug" }) }, error: NotFound.plain }
const slugTaken = "409 `slug: is taken` where another project of the owner has it."

/** Projects. Source: contract/notify#projects. */
export class ProjectsApi extends HttpApiGroup.make("projects")
  .add(
    HttpApiEndpoint.get("listProjects", "/projects", { success: ProjectList })
      .annotate(OpenToProjectKeys, "also")
      .annotate(OpenApi.Summary, "List projects: one's own, or those that a project key covers"),
    HttpApiEndpoint.post("createProject", "/projects", {
      payload: NewProject,
      success: Project.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a project")
      .annotate(OpenApi.Description, `A user has at most 1,000 projects (409). ${slugTaken}`),
    HttpApiEndpoint.get("readProject", "/projects/:id", { ...one, success: Project }).annotate(
      OpenApi.Summary,
      "Read a project"
    ),
    HttpApiEndpoint.patch("updateProject", "/projects/:id", {
      ...one,
      payload: ProjectChange,
      success: Project,
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a project")
      .annotate(OpenApi.Description, slugTaken),
    HttpApiEndpoint.delete("deleteProject", "/projects/:id", {
      ...one,
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "DeletedProject",
        description: "What waits is not sent any more, and the pages of its messages are gone"
      })
    }).annotate(OpenApi.Summary, "Delete a project"),
    HttpApiEndpoint.post("renewJoinLink", "/projects/:id/join-link", { ...one, success: Project }).annotate(
      OpenApi.Summary,
      "Replace a project's join link; the old one works nowhere within a second"
    )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Projects", description: "What notifications are sent to, and by whom." })
  )
  .prefix("/api/v1") {}
