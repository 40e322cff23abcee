import { Context, Effect, Layer } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { strictBodies } from "#schemas/core/StrictBodies.ts"
import { type Domain, MailDomainsApi } from "#schemas/mail/Domain.ts"
import { accounts } from "#src/accounts/Room.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import { DomainSettings } from "#src/mail/domains/DomainSettings.ts"
import * as DomainsRoutes from "#src/mail/domains/DomainsRoutes.ts"
import { domainUpkeep, MailDomains } from "#src/mail/domains/MailDomains.ts"
import { mailDomains } from "#src/mail/migrations/postgres/0036_MailDomains.ts"
import type { ConfigChanges } from "#src/Config.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import type { Room } from "#src/Room.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const settings = {
  spf: ["ip4:192.0.2.1"],
  bounceDomain: "bounces.test",
  hostname: "mx.signalbox.test",
  fromDomains: new Set(["everybody.test"])
}

/** The domains of mail over HTTP, and their service. */
export class DomainStage extends Context.Service<DomainStage, { readonly domains: MailDomains["Service"] }>()(
  "signalbox/test/DomainStage"
) {}

class DomainsAlone extends HttpApi.make("signalbox")
  .add(MailDomainsApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}

const roomOf = (
  given: DomainSettings["Service"],
  upkeep: typeof domainUpkeep | typeof Layer.empty,
  tell: (domains: MailDomains["Service"]) => void
) => {
  const services = MailDomains.layer.pipe(Layer.provideMerge(Layer.succeed(DomainSettings, given)))
  return {
    name: "mail",
    needs: [],
    api: DomainsAlone,
    rawApi: HttpApi.make("signalbox"),
    migrations: {
      postgres: postgresMigrations.some(({ id }) => id === mailDomains.id) ? [] : [mailDomains],
      clickhouse: []
    },
    commands: async () => [],
    server: async () => ({
      served: Layer.mergeAll(
        upkeep,
        HttpApiBuilder.layer(DomainsAlone).pipe(Layer.provide(DomainsRoutes.layer)),
        Layer.effectDiscard(Effect.map(MailDomains, tell))
      ).pipe(Layer.provide(services)),
      raw: RawRoutes.add(Effect.succeed([])),
      paths: []
    })
  } as const satisfies Room<"mail">
}

/** A server of accounts and of domains alone, with the name server of the test. */
export const domainStageWith = (changes: ConfigChanges, upkeep: typeof domainUpkeep | typeof Layer.empty) =>
  Layer.unwrap(
    Effect.map(DnsServer, ({ address }) => {
      let told: MailDomains["Service"] | undefined
      const room = roomOf({ ...settings, nameServers: [address] }, upkeep, (domains) => {
        told = domains
      })
      return Layer.effect(
        DomainStage,
        Effect.sync(() => {
          if (told === undefined) throw new Error("the room was not started")
          return { domains: told }
        })
      ).pipe(
        Layer.provideMerge(
          TestServer.own({ rooms: new Set(["accounts", "mail"]), ...changes }, { rooms: [accounts, room] })
        )
      )
    })
  ).pipe(Layer.provideMerge(DnsServer.layer))

/** Looks are made when a test asks for them. A question without an answer is given up after 1.75 s, as 250, 500 and 1,000 ms. */
export const domainStage = domainStageWith(
  { limits: { mailDnsTryMillis: 250, mailDnsTries: 3 } },
  Layer.empty
)

/** A user, whose requests name a domain by its id. */
export const makeOwner = Effect.gen(function* () {
  const { ask, makeUser } = yield* TestServer
  const { id, key } = yield* makeUser()
  const dns = yield* DnsServer
  const create = (name: string) =>
    Effect.map(ask("POST", path, { key, json: { name } }), (answer) => shown(201, answer))
  const verify = (domainId: string) => ask("POST", `${path}/${domainId}/verify`, { key })
  return {
    id,
    key,
    create,
    verify,
    verified: (domainId: string) => Effect.map(verify(domainId), (answer) => shown(200, answer)),
    read: (domainId: string) =>
      Effect.map(ask("GET", `${path}/${domainId}`, { key }), (answer) => shown(200, answer)),
    rotate: (domainId: string) => ask("POST", `${path}/${domainId}/rotate`, { key }),
    remove: (domainId: string) => ask("DELETE", `${path}/${domainId}`, { key }),
    /** a domain whose records are published and seen */
    own: Effect.fnUntraced(function* (name = newName()) {
      const domain = yield* create(name)
      dns.zone(...domain.records.filter(({ kind }) => kind !== "bounce").map(({ zone }) => zone))
      return shown(200, yield* verify(domain.id))
    })
  }
})

export const path = "/api/v1/emails/domains"

/** As JSON. */
export interface Shown {
  readonly id: string
  readonly name: string
  readonly verified: boolean
  readonly verified_at: string | null
  readonly looked_up_at: string | null
  readonly keys: ReadonlyArray<{
    readonly selector: string
    readonly state: string
    readonly keep_until: string | null
  }>
  readonly records: Domain["records"]
}

export const shown = (status: number, answer: { readonly status: number; readonly json: unknown }): Shown => {
  if (answer.status !== status) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
  return answer.json as Shown
}

export const faultOf = ({ json, status }: { readonly status: number; readonly json: unknown }) => [
  status,
  (json as { readonly error?: unknown }).error
]

let made = 0
/** A name that no other test has. */
export const newName = (): string => `domain-${++made}.test`

export const statuses = ({ records }: Shown): Readonly<Record<string, string | null>> =>
  Object.fromEntries(records.map(({ kind, name, status }) => [`${kind} ${name}`, status]))
