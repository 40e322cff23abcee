import { createPrivateKey, type KeyObject } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type BadRequest, Conflict, invalidField, type NotFound, RateLimited } from "#schemas/core/Problem.ts"
import { DomainRow, type Selector } from "#schemas/mail/Domain.ts"
import { Users } from "#src/accounts/Users.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import type { Limits } from "#src/Limits.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { type DkimKey, newDkimKey } from "../signing/Dkim.ts"
import { sealed, unsealed } from "./DomainKeys.ts"
import { DomainLooks, type Look } from "./DomainLooks.ts"
import { findingKey, keyName, namesFrom, otherSelector, retiredUntil } from "./DomainRecords.ts"
import { DomainSettings, mailDomainOf } from "./DomainSettings.ts"
import { MailDns } from "./MailDns.ts"

interface SigningKey extends DkimKey {
  /** read once, as long as the key signs */
  readonly privateKey: KeyObject
}

/** Domains that mail is sent from, their keys, and their records in DNS. */
export class MailDomains extends Context.Service<
  MailDomains,
  {
    /** oldest first */
    readonly list: (userId: string) => ReadonlyArray<DomainRow>
    readonly find: (userId: string, id: string) => Effect.Effect<DomainRow, NotFound | SqlError>
    /** with a key of its own; 400 where `name` is no domain */
    readonly create: (
      userId: string,
      name: string
    ) => Effect.Effect<DomainRow, BadRequest | Conflict | SqlError>
    /**
     * Looks its records up now, and writes down what is there; 409 where another owner's domain has the name verified, 429
     * where too many of the owner's are being looked up.
     */
    readonly verify: (
      userId: string,
      id: string
    ) => Effect.Effect<DomainRow, NotFound | Conflict | RateLimited | SqlError>
    /** Another key, which signs once a look has seen it; 409 where one is awaited, or the other selector is still needed. */
    readonly rotate: (userId: string, id: string) => Effect.Effect<DomainRow, NotFound | Conflict | SqlError>
    /** Its keys are wiped. */
    readonly remove: (userId: string, id: string) => Effect.Effect<void, NotFound | SqlError>
    /** The key of the nearest verified domain of the owner at or above `domain`, from memory; empty: it is not signed. */
    readonly signingKeys: (userId: string, domain: string) => ReadonlyArray<SigningKey>
    /** Whether mail of this owner may be from an address at `domain`. */
    readonly mayTell: (userId: string, domain: string) => Effect.Effect<boolean, SqlError>
    /** Looks at the domains whose day it is, and deletes those of deleted users; answers how many it looked at. */
    readonly lookAgain: Effect.Effect<number, SqlError>
  }
>()("signalbox/mail/MailDomains") {
  static readonly layer = Layer.effect(
    MailDomains,
    Effect.suspend(() => make)
  ).pipe(Layer.provide(DomainLooks.layer), Layer.provide(MailDns.layer))
}

/** The owner's domain of this name. */
const ownedName = (userId: string, name: string): string => `${userId} ${name}`

const table = {
  name: "mail_domains",
  title: "Domain",
  model: DomainRow,
  ids: "dom",
  indexes: { owned: (row: DomainRow) => ownedName(row.user_id, row.name) },
  gone: {
    is: "deleted_at IS NOT NULL",
    set: "deleted_at = now(), private_key = '', next_private_key = NULL, verified_at = NULL"
  }
}

type Directory = CachedTable.CachedTable<typeof DomainRow, "owned">

const isTaken = (error: unknown): boolean => isSqlError(error) && error.reason._tag === "UniqueViolation"

/** The columns that a look changes. `mayVerify`: no other owner's domain has the name. */
const changeOf = (row: DomainRow, { findings, isNextSeen, isSeen }: Look, mayVerify: boolean, now: Date) => {
  const { next_private_key: nextPrivate, next_public_key: nextPublic } = row
  const isSwitched = isNextSeen && nextPublic !== null && nextPrivate !== null
  const wasVerified = row.verified_at !== null
  const isVerified = mayVerify && (isSwitched || (isSeen ?? wasVerified))
  return {
    findings: JSON.stringify(findings),
    looked_up_at: now,
    ...(isSwitched && {
      selector: otherSelector(row.selector),
      public_key: nextPublic,
      private_key: nextPrivate,
      next_public_key: null,
      next_private_key: null,
      retired_at: now
    }),
    ...(isVerified !== wasVerified &&
      (isVerified ? { verified_at: now } : { verified_at: null, unverified_at: now }))
  }
}

const sayLost = (before: DomainRow, after: DomainRow) =>
  before.verified_at !== null && after.verified_at === null
    ? Effect.logWarning(
        `${after.name} is no longer verified for mail: the record of its DKIM key is gone or differs`
      )
    : Effect.void

/** Looks at domains and keeps what was seen. */
const makeLooking = Effect.fnUntraced(function* (directory: Directory) {
  const sql = yield* SqlClient
  const { look } = yield* DomainLooks

  const keep = (looked: DomainRow, seen: Look, mayVerify: boolean) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT id FROM mail_domains WHERE id = ${looked.id} FOR NO KEY UPDATE`
        const row = yield* directory.read(looked.id, undefined)
        if (row.public_key !== looked.public_key || row.next_public_key !== looked.next_public_key)
          return yield* Conflict.of(`The keys of ${row.name} were changed meanwhile, try again`)
        const now = new Date(yield* Clock.currentTimeMillis)
        const kept = yield* directory.update(row.id, undefined, changeOf(row, seen, mayVerify, now))
        yield* sayLost(row, kept)
        return kept
      })
    )

  /** Another owner who has the name verified has it no longer, if their record is gone. */
  const lookAtHolder = Effect.fnUntraced(function* ({ name, user_id: userId }: DomainRow) {
    const [holder] = yield* directory.rows(
      sql`SELECT ${directory.columns} FROM mail_domains WHERE name = ${name} AND verified_at IS NOT NULL
        AND user_id <> ${userId} AND ${directory.live}`
    )
    if (holder === undefined) return
    const seen = yield* look(holder)
    yield* Effect.catchTag(keep(holder, seen, true), ["NotFound", "Conflict"], () => Effect.void)
  })

  return Effect.fnUntraced(function* (row: DomainRow) {
    const seen = yield* look(row)
    if (row.verified_at === null && (seen.isSeen === true || seen.isNextSeen)) yield* lookAtHolder(row)
    return yield* Effect.catchIf(keep(row, seen, true), isTaken, () =>
      Effect.andThen(
        keep(row, seen, false),
        Effect.fail(
          Conflict.of(`${row.name} is verified for another account`, { code: "domain_taken", param: "name" })
        )
      )
    )
  })
})

/** DNS may take seconds: one owner's looks leave room for those of others. */
const makeShares = ({ mailDomainLooks }: Limits) => {
  const shares = new FairShares(mailDomainLooks)
  return <A, E>(userId: string, look: Effect.Effect<A, E>): Effect.Effect<A, E | RateLimited> =>
    Effect.suspend((): Effect.Effect<A, E | RateLimited> => {
      if (!shares.take(userId, 1))
        return Effect.fail(
          RateLimited.of("Too many of your domains are being looked up, try again", { retryAfterSeconds: 5 })
        )
      return Effect.ensuring(
        look,
        Effect.sync(() => shares.release(userId, 1))
      )
    })
}

/** Every so often, those that are verified, or were within the last days. */
const lookingAgain = (
  sql: SqlClient,
  directory: Directory,
  limits: Limits,
  lookAt: (row: DomainRow) => Effect.Effect<DomainRow, NotFound | Conflict | SqlError>
) =>
  Effect.gen(function* () {
    const { mailDomainLookEveryMillis: every, mailDomainsAtOnce: atOnce } = limits
    yield* sql`UPDATE mail_domains SET ${sql.literal(table.gone.set)} WHERE ${directory.live}
      AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)`
    let looked = 0
    while (true) {
      const rows = yield* directory.rows(
        sql`SELECT ${directory.columns} FROM mail_domains WHERE ${directory.live}
          AND (looked_up_at IS NULL OR looked_up_at < now() - ${every} * interval '1 millisecond')
          AND (verified_at IS NOT NULL
            OR unverified_at > now() - ${limits.mailDomainUnverifiedMillis} * interval '1 millisecond')
          ORDER BY looked_up_at NULLS FIRST LIMIT ${atOnce}`
      )
      yield* Effect.forEach(
        rows,
        (row) => Effect.catchTag(lookAt(row), ["NotFound", "Conflict"], () => Effect.void),
        { concurrency: 4, discard: true }
      )
      looked += rows.length
      if (rows.length < atOnce) return looked
    }
  })

/** Makes keys, and opens those that sign. */
const makeKeys = Effect.gen(function* () {
  const secret = yield* (yield* Secrets).of("mail-domain-keys")
  const opened = new WeakMap<Uint8Array, KeyObject>()
  return {
    make: (domainId: string, selector: DomainRow["selector"]) =>
      Effect.map(
        Effect.promise(() => newDkimKey()),
        ({ privateKey, publicKey }) => ({
          publicKey,
          privateKey: sealed(privateKey, { domainId, selector }, secret)
        })
      ),
    open: ({ id: domainId, private_key: bytes, selector }: DomainRow): KeyObject => {
      const privateKey =
        opened.get(bytes) ?? createPrivateKey(unsealed(bytes, { domainId, selector }, secret))
      opened.set(bytes, privateKey)
      return privateKey
    }
  }
})

/** Rights to send from a domain, and the keys that sign. */
const makeRights = Effect.fnUntraced(function* (directory: Directory) {
  const sql = yield* SqlClient
  const users = yield* Users
  const keys = yield* makeKeys
  const { fromDomains } = yield* DomainSettings

  const verifiedOf = (userId: string, names: ReadonlyArray<string>): DomainRow | undefined =>
    names
      .map((name) => directory.by("owned", ownedName(userId, name)))
      .find((row) => row !== undefined && row.verified_at !== null)

  const isAdministrator = (userId: string) =>
    Effect.matchEffect(users.find(userId), {
      onFailure: () => Effect.succeed(false),
      onSuccess: ({ role }) => Effect.succeed(role === "admin")
    })

  /** Another process may have verified it a moment ago, so Postgres is asked for what memory does not know. */
  const isVerifiedSince = (userId: string, names: ReadonlyArray<string>) =>
    Effect.map(
      directory.first(
        sql`SELECT ${directory.columns} FROM mail_domains WHERE user_id = ${userId} AND name = ANY(${names}::text[])
          AND verified_at IS NOT NULL AND ${directory.live}`
      ),
      (row) => row !== undefined
    )

  return {
    keys,
    signingKeys: (userId: string, domain: string): ReadonlyArray<SigningKey> => {
      const row = verifiedOf(userId, namesFrom(domain))
      if (row === undefined) return []
      return [{ domain: row.name, selector: row.selector, privateKey: keys.open(row) }]
    },
    mayTell: Effect.fnUntraced(function* (userId: string, domain: string) {
      const names = namesFrom(domain)
      if (fromDomains.has("*") || names.some((name) => fromDomains.has(name))) return true
      if (verifiedOf(userId, names) !== undefined || (yield* isAdministrator(userId))) return true
      return yield* isVerifiedSince(userId, names)
    })
  }
})

const rotating = (sql: SqlClient, directory: Directory, keys: Effect.Success<typeof makeKeys>) =>
  Effect.fn("MailDomains.rotate")(function* (userId, id) {
    const { selector } = yield* mayRotate(yield* directory.read(id, userId))
    const made = yield* keys.make(id, otherSelector(selector))
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT id FROM mail_domains WHERE id = ${id} FOR NO KEY UPDATE`
        const row = yield* mayRotate(yield* directory.read(id, userId))
        if (row.selector !== selector)
          return yield* Conflict.of(`The keys of ${row.name} were changed meanwhile, try again`)
        return yield* directory.update(id, userId, {
          next_public_key: made.publicKey,
          next_private_key: made.privateKey,
          retired_at: null,
          findings: JSON.stringify(withoutKey(row, otherSelector(selector)))
        })
      })
    )
  })

const firstSelector = "sb1"

const alreadyThere = Effect.suspend(() =>
  Effect.fail(Conflict.of("name: is there already", { code: "domain_exists", param: "name" }))
)

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const directory = yield* CachedTable.make(table)
  const { keys, mayTell, signingKeys } = yield* makeRights(directory)
  const lookAt = yield* makeLooking(directory)
  const { limits } = yield* AppConfig
  const inShare = makeShares(limits)

  /** Another process may have made it a moment ago. */
  const find: MailDomains["Service"]["find"] = Effect.fnUntraced(function* (userId, id) {
    const known =
      directory.get(id) ??
      (yield* directory.first(
        sql`SELECT ${directory.columns} FROM mail_domains WHERE id = ${id} AND ${directory.live}`
      ))
    return known?.user_id === userId ? known : yield* notFound(table.title)
  })

  return MailDomains.of({
    list: directory.list,
    find,
    create: Effect.fn("MailDomains.create")(function* (userId, text) {
      const name = mailDomainOf(text)
      if (name === undefined)
        return yield* invalidField("name", `${JSON.stringify(text.slice(0, 100))} is not a domain name`)
      // Before a key is made, which takes a thread 100 ms; a domain that another process has just made is met below.
      if (directory.by("owned", ownedName(userId, name)) !== undefined) return yield* alreadyThere
      const id = newId(table.ids)
      const made = yield* keys.make(id, firstSelector)
      const row = {
        name,
        selector: firstSelector,
        public_key: made.publicKey,
        private_key: made.privateKey
      } as const
      return yield* Effect.catchIf(
        directory.insertFor(userId, row, limits.mailDomainsPerUser, { id }),
        isTaken,
        () => alreadyThere
      )
    }),
    verify: (userId, id) =>
      // Memory may not have the keys that another process has made.
      inShare(userId, Effect.flatMap(Effect.andThen(find(userId, id), directory.read(id, userId)), lookAt)),
    rotate: rotating(sql, directory, keys),
    remove: (userId, id) => Effect.asVoid(directory.remove(id, userId)),
    signingKeys,
    mayTell,
    lookAgain: lookingAgain(sql, directory, limits, lookAt)
  })
})

/** A new key has not been looked at, whatever was found under its selector before. */
const withoutKey = ({ findings, name }: DomainRow, selector: Selector) =>
  Object.fromEntries(
    Object.entries(findings).filter(
      ([key]) => key !== findingKey({ kind: "dkim", name: keyName(selector, name) })
    )
  )

/** The other selector has to be free: its record is read by those who verify mail that is on its way. */
const mayRotate = Effect.fnUntraced(function* (row: DomainRow) {
  const other = otherSelector(row.selector)
  if (row.next_public_key !== null)
    return yield* Conflict.of(`The key of ${other} is awaited already: publish its record, then verify`)
  if (row.retired_at === null) return row
  const until = retiredUntil(row.retired_at)
  if (until.getTime() <= (yield* Clock.currentTimeMillis)) return row
  return yield* Conflict.of(
    `Mail that ${other} signed may be on its way: another key can be made from ${until.toISOString()} on`
  )
})

/** The daily look, and the rows of deleted domains. */
export const domainUpkeep = Layer.merge(
  Sweeps.layer({
    name: "mail-domain-looks",
    every: "sweepEveryMillis",
    run: Effect.flatMap(MailDomains, ({ lookAgain }) => lookAgain)
  }),
  Sweep.layer(table.name, "deleted_at")
)
