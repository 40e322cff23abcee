import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { domainUpkeep } from "#src/mail/domains/MailDomains.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { DnsServer } from "#test/mail/DnsServer.ts"
import { DomainStage, domainStageWith, newName, path, shown } from "./DomainStage.ts"

const live = { excludeTestServices: true } as const

const often = domainStageWith({ limits: { sweepEveryMillis: 200, goneMillis: 60_000 } }, domainUpkeep)

layer(often, live)("domains of mail, by sweeps", (it) => {
  it.effect("are looked at without a request, and deleted for good a day after they went", () =>
    Effect.gen(function* () {
      const dns = yield* DnsServer
      const sql = yield* SqlClient
      const { ask } = yield* TestServer
      const { domains } = yield* DomainStage
      const name = newName()
      const { id, records } = shown(201, yield* ask("POST", path, { json: { name } }))
      dns.zone(...records.map(({ zone }) => zone))
      // A sweep may have looked before they were published: the next look is a day later.
      yield* sql`UPDATE mail_domains SET looked_up_at = NULL WHERE id = ${id}`
      const isVerified = Effect.map(
        ask("GET", `${path}/${id}`),
        ({ json }) => Predicate.hasProperty(json, "verified") && json.verified === true
      )
      yield* eventually("it is verified", isVerified)
      assert.strictEqual((yield* ask("DELETE", `${path}/${id}`)).status, 200)
      yield* sql`UPDATE mail_domains SET deleted_at = now() - interval '2 minutes' WHERE id = ${id}`
      yield* eventually(
        "its row is deleted",
        Effect.map(sql`SELECT id FROM mail_domains WHERE id = ${id}`, ({ length }) => length === 0)
      )
      const [owner] = yield* sql<{ id: string }>`SELECT id FROM users WHERE role = 'admin'`
      assert.deepStrictEqual(domains.signingKeys(owner?.id ?? "", name), [])
    })
  )
})
