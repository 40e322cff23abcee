import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import { slugOf } from "#schemas/core/Slug.ts"
import { type NewProject, type ProjectChange, ProjectRow, slugLengthMax } from "#schemas/notify/Project.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Links } from "../Links.ts"

/** All projects in memory. A change holds everywhere within a second. */
export class ProjectDirectory extends Context.Service<
  ProjectDirectory,
  CachedTable.CachedTable<typeof ProjectRow, "slug" | "join"> & {
    /** of this owner, by id or slug */
    readonly named: (owner: string, ref: string) => ProjectRow | undefined
  }
>()("signalbox/notify/ProjectDirectory") {
  static readonly layer = Layer.effect(
    ProjectDirectory,
    Effect.map(
      CachedTable.make({
        name: "projects",
        title: "Project",
        model: ProjectRow,
        ids: "pjt",
        computed: { join_hash: "encode(join_hash, 'hex')" },
        indexes: {
          slug: ({ slug, user_id }) => `${user_id} ${slug}`,
          join: ({ join_hash }) => join_hash
        },
        gone: "deleted_at"
      }),
      (projects) => ({
        ...projects,
        named: (owner, ref) => {
          const project = projects.get(ref) ?? projects.by("slug", `${owner} ${ref}`)
          return project?.user_id === owner ? project : undefined
        }
      })
    )
  )
}

/** Makes, changes and deletes projects. `ref`: an id or a slug. */
export class Projects extends Context.Service<
  Projects,
  {
    /** by slug */
    readonly list: (userId: string) => ReadonlyArray<ProjectRow>
    readonly find: (ref: string, userId: string) => Effect.Effect<ProjectRow, NotFound | SqlError>
    readonly create: (
      userId: string,
      project: NewProject
    ) => Effect.Effect<ProjectRow, BadRequest | Conflict | SqlError>
    readonly update: (
      ref: string,
      userId: string,
      change: ProjectChange
    ) => Effect.Effect<ProjectRow, NotFound | Conflict | SqlError>
    readonly remove: (ref: string, userId: string) => Effect.Effect<void, NotFound | SqlError>
    /** The join link that there was is dead. */
    readonly renewLink: (ref: string, userId: string) => Effect.Effect<ProjectRow, NotFound | SqlError>
    /** subscribers of each of them that has any */
    readonly subscribers: (
      projects: ReadonlyArray<ProjectRow>
    ) => Effect.Effect<ReadonlyMap<string, number>, SqlError>
  }
>()("signalbox/notify/Projects") {
  static readonly layer = Layer.effect(
    Projects,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      return make({
        directory: yield* ProjectDirectory,
        links: yield* Links,
        sql: yield* SqlClient,
        projectsMax: limits.projectsPerUser
      })
    })
  )
}

export const bySlug = (one: ProjectRow, other: ProjectRow): number => (one.slug < other.slug ? -1 : 1)

const taken = <E>(error: E | SqlError): E | SqlError | Conflict =>
  isSqlError(error) && error.reason._tag === "UniqueViolation"
    ? Conflict.of("slug: is taken", { code: "slug_taken", param: "slug" })
    : error

interface Parts {
  readonly directory: ProjectDirectory["Service"]
  readonly links: Links["Service"]
  readonly sql: SqlClient
  readonly projectsMax: number
}

const make = ({ directory, links, projectsMax, sql }: Parts): Projects["Service"] => {
  /** Another process may have made it a moment ago, so Postgres is asked for what memory does not know. */
  const find: Projects["Service"]["find"] = Effect.fnUntraced(function* (ref, userId) {
    const known = directory.named(userId, ref)
    if (known !== undefined) return known
    const row = yield* directory.first(
      sql`SELECT ${directory.columns} FROM projects WHERE user_id = ${userId} AND (id = ${ref} OR slug = ${ref})
        AND ${directory.live}`
    )
    return row ?? (yield* notFound("Project"))
  })
  return {
    list: (userId) => directory.list(userId).toSorted(bySlug),
    find,
    create: Effect.fn("Projects.create")(function* (userId, { description, joining, name, ...given }) {
      const slug = given.slug ?? slugOf(name, slugLengthMax)
      if (slug === undefined)
        return yield* invalidField("slug", "is required: none can be made from the name")
      const id = newId("pjt")
      const fields = {
        name,
        slug,
        description: description ?? "",
        joining: joining ?? ("link" as const),
        join_generation: 0,
        join_hash: links.join(id, 0).hash
      }
      return yield* Effect.mapError(directory.insertFor(userId, fields, projectsMax, { id }), taken)
    }),
    update: Effect.fn("Projects.update")(function* (ref, userId, change) {
      const { id } = yield* find(ref, userId)
      return yield* Effect.mapError(directory.update(id, userId, change), taken)
    }),
    remove: (ref, userId) =>
      Effect.flatMap(find(ref, userId), ({ id }) => Effect.asVoid(directory.remove(id, userId))),
    renewLink: Effect.fn("Projects.renewLink")(function* (ref, userId) {
      const { id } = yield* find(ref, userId)
      return yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT id FROM projects WHERE id = ${id} FOR UPDATE`
          const { join_generation: generation } = yield* directory.read(id, userId)
          const { hash } = links.join(id, generation + 1)
          return yield* directory.update(id, userId, {
            join_generation: generation + 1,
            join_hash: hash
          })
        })
      )
    }),
    subscribers: Effect.fnUntraced(function* (projects) {
      const rows = yield* sql<{ id: string; subscribers: number }>`
        SELECT project_id AS id, count(*)::int AS subscribers FROM project_subscriptions
        WHERE project_id = ANY(${projects.map(({ id }) => id)}::text[]) GROUP BY project_id`
      return new Map(rows.map(({ id, subscribers }) => [id, subscribers]))
    })
  }
}
