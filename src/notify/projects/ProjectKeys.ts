import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  type BadRequest,
  type Conflict,
  invalidField,
  NotFound,
  type Unauthorized
} from "#schemas/core/Problem.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"
import type { CoveredProjects, ProjectRow } from "#schemas/notify/Project.ts"
import { type NewProjectKey, type ProjectKeyChange, ProjectKeyRow } from "#schemas/notify/ProjectKey.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { Credentials } from "#src/accounts/Credentials.ts"
import { UserDirectory } from "#src/accounts/Users.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { sendsName } from "#schemas/notify/Message.ts"
import { bySlug, ProjectDirectory, Projects } from "./Projects.ts"

/** All project keys that are not revoked, in memory. A change or a revocation holds everywhere within a second. */
export class ProjectKeyDirectory extends Context.Service<
  ProjectKeyDirectory,
  CachedTable.CachedTable<typeof ProjectKeyRow, "hash">
>()("signalbox/notify/ProjectKeyDirectory") {
  static readonly layer = Layer.effect(
    ProjectKeyDirectory,
    CachedTable.make({
      name: "project_keys",
      title: "Project key",
      model: ProjectKeyRow,
      ids: "pky",
      computed: { hash: "encode(hash, 'hex')" },
      indexes: { hash: ({ hash }) => hash },
      gone: "revoked_at"
    })
  )
}

/** Makes, changes and revokes project keys, and says what they cover. */
export class ProjectKeys extends Context.Service<
  ProjectKeys,
  {
    readonly list: (userId: string) => ReadonlyArray<ProjectKeyRow>
    readonly create: (
      userId: string,
      key: NewProjectKey
    ) => Effect.Effect<
      { readonly row: ProjectKeyRow; readonly secret: string },
      BadRequest | NotFound | Conflict | SqlError
    >
    readonly update: (
      id: string,
      userId: string,
      change: ProjectKeyChange
    ) => Effect.Effect<ProjectKeyRow, BadRequest | NotFound | SqlError>
    readonly revoke: (id: string, userId: string) => Effect.Effect<void, NotFound | SqlError>
    /** by slug */
    readonly covered: (key: ProjectKeyRow) => ReadonlyArray<ProjectRow>
    /** the row of a request's key; undefined: it was revoked since */
    readonly ofPrincipal: (key: Principal) => ProjectKeyRow | undefined
  }
>()("signalbox/notify/ProjectKeys") {
  static readonly layer = Layer.effect(
    ProjectKeys,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const directory = yield* ProjectKeyDirectory
      const projects = yield* ProjectDirectory
      yield* (yield* Credentials).add(yield* makeSource)
      return make({
        directory,
        directoryOfProjects: projects,
        projects: yield* Projects,
        keysMax: limits.projectKeysPerUser
      })
    })
  )
}

/** The projects that a request's key covers, and the key, as they are shown to it. */
export const coverage = (
  keys: ProjectKeys["Service"],
  caller: Principal
): Effect.Effect<CoveredProjects, Unauthorized> => {
  const key = keys.ofPrincipal(caller)
  if (key === undefined) return Effect.fail(invalidKey())
  const { expiresAt, name, prefix } = key
  return Effect.succeed({
    projects: keys.covered(key).map(({ description, id, name, slug }) => ({ id, slug, name, description })),
    key: { name, prefix, expiresAt: expiresAt?.toISOString() ?? null }
  })
}

const form = /^prj_[0-9A-Za-z]{40}$/

/** Look-ups under way at once for keys that memory does not know: guesses must not take Postgres's connections. */
const lookupsAtOnce = 2

/** Project keys as credentials: found by their hash, in memory or, made by another process a moment ago, in Postgres. */
const makeSource = Effect.gen(function* () {
  const directory = yield* ProjectKeyDirectory
  const users = yield* UserDirectory
  const clock = yield* Clock.Clock
  const sql = yield* SqlClient
  const ask = (yield* Semaphore.make(lookupsAtOnce)).withPermits(1)
  const hasEnded = ({ expiresAt }: ProjectKeyRow): boolean =>
    expiresAt !== null && expiresAt.getTime() <= clock.currentTimeMillisUnsafe()
  const principalOf = (row: ProjectKeyRow | undefined): Principal | "unknown" | undefined => {
    if (row === undefined || users.get(row.user_id) === undefined) return "unknown"
    return hasEnded(row) ? undefined : principalOfKey(row)
  }
  const known = (hash: Buffer) => directory.by("hash", hash.toString("hex"))
  return {
    form,
    recall: (secret: string) => principalOf(known(hashOf(secret))),
    holder: (id: string) => {
      const holder = principalOf(directory.get(id))
      return holder === "unknown" ? undefined : holder
    },
    authenticate: Effect.fnUntraced(function* (secret: string) {
      // The hash is the key of a map: no comparison takes longer the more of a secret is right.
      const hash = hashOf(secret)
      const look = directory.first(
        sql`SELECT ${directory.columns} FROM project_keys WHERE hash = ${hash} AND ${directory.live}`
      )
      const row = known(hash) ?? (yield* ask(look))
      if (row !== undefined && users.get(row.user_id) === undefined)
        yield* Effect.catchTag(users.refreshNow, "CacheFailed", Effect.die)
      const holder = principalOf(row)
      return holder === "unknown" ? undefined : holder
    })
  }
})

const principalOfKey = (row: ProjectKeyRow): Principal => ({
  kind: "project",
  id: row.id,
  ownerId: row.user_id,
  scopes: [],
  expiresAt: row.expiresAt,
  keyId: row.id,
  keyName: row.name,
  role: "user",
  models: null,
  collections: null,
  rateLimitPerMinute: null,
  ...(row.rateLimitPerMinute !== null && { limits: { [sendsName]: row.rateLimitPerMinute } })
})

const expiryOf = (text: string | null | undefined): Effect.Effect<Date | null, BadRequest> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const instant = typeof text === "string" ? parseInstant(text) : null
    return instant === undefined || (instant !== null && instant.getTime() <= now)
      ? Effect.fail(invalidField("expiresAt", "expected an instant in the future"))
      : Effect.succeed(instant)
  })

interface Parts {
  readonly directory: ProjectKeyDirectory["Service"]
  readonly directoryOfProjects: ProjectDirectory["Service"]
  readonly projects: Projects["Service"]
  readonly keysMax: number
}

const make = ({ directory, directoryOfProjects, keysMax, projects }: Parts): ProjectKeys["Service"] => {
  /** The ids of the named projects, each once; null: all. */
  const idsOf = Effect.fnUntraced(function* (userId: string, refs: NewProjectKey["projects"]) {
    if (refs === "all") return null
    const ids = yield* Effect.forEach(refs, (ref, index) =>
      Effect.mapError(
        Effect.map(projects.find(ref, userId), ({ id }) => id),
        (error) =>
          error._tag === "NotFound"
            ? NotFound.of(`projects[${index}]: not found`, { param: `projects[${index}]` })
            : error
      )
    )
    return [...new Set(ids)]
  })
  return {
    list: directory.list,
    create: Effect.fn("ProjectKeys.create")(function* (
      userId,
      { expiresAt, name, rateLimitPerMinute, ...given }
    ) {
      const secret = newSecret("prj_")
      const fields = {
        name,
        prefix: prefixOf(secret),
        hash: hashOf(secret),
        projects: yield* idsOf(userId, given.projects),
        expiresAt: yield* expiryOf(expiresAt),
        rateLimitPerMinute: rateLimitPerMinute ?? null
      }
      return { row: yield* directory.insertFor(userId, fields, keysMax), secret }
    }),
    update: Effect.fn("ProjectKeys.update")(function* (id, userId, { expiresAt, projects: refs, ...rest }) {
      // Another one's key is not there, whatever else is wrong.
      yield* directory.read(id, userId)
      return yield* directory.update(id, userId, {
        ...rest,
        ...(expiresAt !== undefined && { expiresAt: yield* expiryOf(expiresAt) }),
        ...(refs !== undefined && { projects: yield* idsOf(userId, refs) })
      })
    }),
    revoke: (id, userId) => Effect.asVoid(directory.remove(id, userId)),
    covered: ({ projects: ids, user_id: owner }) =>
      ids === null
        ? directoryOfProjects.list(owner).toSorted(bySlug)
        : ids.flatMap((id) => directoryOfProjects.named(owner, id) ?? []).toSorted(bySlug),
    ofPrincipal: ({ id }) => directory.get(id)
  }
}
