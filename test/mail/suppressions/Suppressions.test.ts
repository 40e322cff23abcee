import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Suppressions } from "#src/mail/suppressions/Suppressions.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { perUser, served } from "./SuppressionStage.ts"

const path = "/api/v1/emails/suppressions"

interface Listed {
  readonly suppressions: ReadonlyArray<{
    readonly id: string
    readonly address: string
    readonly [field: string]: unknown
  }>
  readonly meta: { readonly limit: number; readonly offset: number; readonly total: number }
}

/** A new user with requests of theirs. */
const person = Effect.gen(function* () {
  const { ask, makeUser } = yield* TestServer
  const { id, key } = yield* makeUser()
  return {
    id,
    key,
    add: (json: object) => ask("POST", path, { key, json }),
    list: (query = "") => Effect.map(ask("GET", `${path}${query}`, { key }), ({ json }) => json as Listed),
    upload: (body: string | Uint8Array<ArrayBuffer>) =>
      ask("POST", `${path}.csv`, { key, body, headers: { "content-type": "text/csv" } }),
    download: Effect.map(ask("GET", `${path}.csv`, { key }), ({ bytes, headers, status }) => ({
      status,
      type: headers.get("content-type"),
      text: Buffer.from(bytes).toString()
    }))
  }
})

const used = <A, E>(use: (suppressions: Suppressions["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Suppressions, use).pipe(Effect.provide(Suppressions.layer))

layer(served, { excludeTestServices: true })("suppressions", (it) => {
  it.effect("are added, listed newest first, and removed by their owner alone", () =>
    Effect.gen(function* () {
      const { add, id: owner, key, list } = yield* person
      const { ask, makeUser } = yield* TestServer
      const one = yield* add({ address: "Ada@Example.org", note: "asked by phone" })
      assert.strictEqual(one.status, 201)
      assert.deepInclude(one.json, {
        address: "ada@example.org",
        scope: "all",
        reason: "manual",
        note: "asked by phone"
      })
      assert.match(textOf(one, "id"), /^sup_[0-9A-Za-z]{22}$/)
      assert.match(textOf(one, "created_at"), /^\d{4}-.*Z$/)
      const two = yield* add({ address: "*@example.net", reason: "unsubscribe" })
      assert.deepInclude(two.json, { address: "*@example.net", scope: "bulk", note: null })
      assert.deepStrictEqual(yield* list(), {
        suppressions: [two.json, one.json],
        meta: { limit: 100, offset: 0, total: 2 }
      } as unknown)
      assert.deepStrictEqual(yield* list("?limit=1&offset=1"), {
        suppressions: [one.json],
        meta: { limit: 1, offset: 1, total: 2 }
      } as unknown)
      const { key: other } = yield* makeUser()
      const remove = (by: string) => ask("DELETE", `${path}/${textOf(one, "id")}`, { key: by })
      assert.deepStrictEqual((yield* ask("GET", path, { key: other })).json, {
        suppressions: [],
        meta: { limit: 100, offset: 0, total: 0 }
      })
      const refused = yield* remove(other)
      assert.deepStrictEqual([refused.status, refused.json], [404, { error: "Suppression not found" }])
      assert.deepStrictEqual((yield* remove(key)).json, { deleted: true })
      assert.strictEqual((yield* remove(key)).status, 404)
      assert.strictEqual((yield* used(({ of }) => of(owner, ["ada@example.org"], true))).size, 0)
      assert.strictEqual((yield* ask("GET", path, { key: "" })).status, 401)
    })
  )

  it.effect("added again keep their id, with the new reason and note", () =>
    Effect.gen(function* () {
      const { add, list } = yield* person
      const one = yield* add({ address: "a@example.org", reason: "complaint" })
      const again = yield* add({ address: "A@example.org", note: "by hand" })
      assert.deepStrictEqual(again.json, { ...(one.json as object), reason: "manual", note: "by hand" })
      yield* add({ address: "a@example.org", reason: "unsubscribe" })
      assert.strictEqual((yield* list()).meta.total, 2)
    })
  )

  it.effect("are refused with the field that is at fault", () =>
    Effect.gen(function* () {
      const { add, list } = yield* person
      const faults = [
        [{ address: "a@" }, 'address: "a@" is neither an address nor *@ and a domain'],
        [{ address: "*@org" }, 'address: "*@org" is neither an address nor *@ and a domain'],
        [{}, "address: is required"],
        [{ address: "a@example.org", scope: "all" }, "scope: is not known here"],
        [{ address: "a@example.org", reason: "because" }, /^reason: /],
        [{ address: "a@example.org", note: "n".repeat(201) }, /^note: /]
      ] as const
      for (const [json, expected] of faults) {
        const refused = yield* add(json)
        assert.strictEqual(refused.status, 400)
        if (typeof expected === "string") assert.strictEqual(textOf(refused, "error"), expected)
        else assert.match(textOf(refused, "error"), expected)
      }
      assert.strictEqual((yield* list()).meta.total, 0)
    })
  )

  it.effect("are found by address, with those of its domain, and by reason", () =>
    Effect.gen(function* () {
      const { add, key, list } = yield* person
      const { ask } = yield* TestServer
      for (const address of ["a@example.org", "b@example.org", "*@example.org", "a@example.net"])
        yield* add({ address })
      yield* add({ address: "a@example.org", reason: "unsubscribe" })
      const found = (query: string) =>
        Effect.map(list(query), ({ meta, suppressions }) => [
          meta.total,
          suppressions.map(({ address }) => address)
        ])
      assert.deepStrictEqual(yield* found("?address=A@example.org"), [
        3,
        ["a@example.org", "*@example.org", "a@example.org"]
      ])
      assert.deepStrictEqual(yield* found("?address=*@example.org"), [1, ["*@example.org"]])
      assert.deepStrictEqual(yield* found("?address=a@example.org&reason=unsubscribe"), [
        1,
        ["a@example.org"]
      ])
      assert.strictEqual((yield* ask("GET", `${path}?address=a@`, { key })).status, 400)
    })
  )

  it.effect(
    "hold for addresses in any case and for domains; those of unsubscribe links for bulk mail alone",
    () =>
      Effect.gen(function* () {
        const { add, id: owner, list } = yield* person
        const other = yield* person
        yield* add({ address: "manual@example.org" })
        yield* add({ address: "optout@example.org", reason: "unsubscribe" })
        yield* add({ address: "*@example.net", reason: "complaint" })
        yield* used(({ suppress }) =>
          suppress(owner, "Bounced@example.org", "hard_bounce", "550 no such user")
        )
        yield* used(({ suppress }) => suppress(owner, "bounced@example.org", "complaint"))
        yield* used(({ suppress }) => suppress(owner, "long@example.org", "hard_bounce", "5".repeat(500)))
        const { suppressions } = yield* list("?address=long@example.org")
        assert.strictEqual(suppressions[0]?.["note"], "5".repeat(200))
        const asked = [
          "Manual@example.org",
          "optout@example.org",
          "x@example.net",
          "BOUNCED@example.org",
          "x@sub.example.net",
          "y@example.org"
        ]
        const of = (whose: string, isBulk: boolean) =>
          Effect.map(
            used((all) => all.of(whose, asked, isBulk)),
            Object.fromEntries
          )
        const always = {
          "Manual@example.org": "manual",
          "x@example.net": "complaint",
          "BOUNCED@example.org": "hard_bounce"
        }
        assert.deepStrictEqual(yield* of(owner, false), always)
        assert.deepStrictEqual(yield* of(owner, true), { ...always, "optout@example.org": "unsubscribe" })
        assert.deepStrictEqual(yield* of(other.id, true), {})
        assert.strictEqual((yield* used((all) => all.of(owner, [], true))).size, 0)
      })
  )

  it.effect("of one address with two scopes hold with the reason of the wider one", () =>
    Effect.gen(function* () {
      const { add, id: owner } = yield* person
      yield* add({ address: "a@example.org", reason: "complaint" })
      yield* add({ address: "a@example.org", reason: "unsubscribe" })
      for (const isBulk of [true, false])
        assert.strictEqual(
          (yield* used((all) => all.of(owner, ["a@example.org"], isBulk))).get("a@example.org"),
          "complaint"
        )
    })
  )

  it.effect("are so many of one owner at most, however they come at once; the server adds more", () =>
    Effect.gen(function* () {
      const { add, id: owner, list, upload } = yield* person
      const added = yield* Effect.forEach(
        Array.from({ length: perUser + 5 }, (_, n) => n),
        (n) => add({ address: `a${n}@example.org` }),
        { concurrency: 8 }
      )
      assert.lengthOf(
        added.filter(({ status }) => status === 201),
        perUser
      )
      assert.lengthOf(
        added.filter(({ status }) => status === 409),
        5
      )
      assert.strictEqual((yield* upload("new@example.org")).status, 409)
      yield* used(({ suppress }) => suppress(owner, "bounced@example.org", "hard_bounce"))
      assert.strictEqual((yield* list()).meta.total, perUser + 1)
      const [known] = (yield* list("?offset=10")).suppressions
      assert.strictEqual((yield* add({ address: known?.address, note: "still mine" })).status, 201)
    })
  )

  it.effect("come from CSV and go there, and come back as they were", () =>
    Effect.gen(function* () {
      const { add, download, list, upload } = yield* person
      const other = yield* person
      yield* add({ address: "known@example.org", note: "first" })
      const file = [
        "email,reason,note",
        "known@example.org,complaint,second",
        'b@example.org,unsubscribe,"said ""no"", twice"',
        "=1+1@example.org,hard_bounce,=cmd()",
        "a@,manual,",
        "B@example.org,unsubscribe,again"
      ]
      const answer = yield* upload(file.join("\n"))
      assert.deepStrictEqual(answer.json, {
        added: 2,
        known: 2,
        failed: 1,
        errors: [{ line: 5, error: 'address: "a@" is neither an address nor *@ and a domain' }]
      })
      const { status, text, type } = yield* download
      assert.deepStrictEqual([status, type], [200, "text/csv; charset=utf-8"])
      const lines = text.split("\r\n").map((line) => line.replace(/,[^,]*Z$/, ""))
      assert.deepStrictEqual(lines, [
        "address,reason,scope,note,created_at",
        "'=1+1@example.org,hard_bounce,all,'=cmd()",
        'b@example.org,unsubscribe,bulk,"said ""no"", twice"',
        "known@example.org,manual,all,first",
        ""
      ])
      assert.deepInclude((yield* other.upload(text)).json, { added: 3, known: 0, failed: 0 })
      const bare = ({ suppressions }: Listed) =>
        suppressions.map(({ address, note, reason, scope }) => [address, note, reason, scope]).toSorted()
      assert.deepStrictEqual(bare(yield* other.list()), bare(yield* list()))
    })
  )

  it.effect("come in files of UTF-8, of so many rows and bytes at most", () =>
    Effect.gen(function* () {
      const { list, upload } = yield* person
      const notText = yield* upload(Uint8Array.from([0x61, 0x40, 0xff]))
      assert.deepStrictEqual([notText.status, notText.json], [400, { error: "body: it is not UTF-8" }])
      const rows = yield* upload("a@b.org\n".repeat(20_001))
      assert.deepStrictEqual([rows.status, rows.json], [413, { error: "body: at most 20000 rows" }])
      assert.strictEqual((yield* upload("x".repeat(1024 * 1024 + 1))).status, 413)
      const repeated = yield* upload("a@b.org\n".repeat(20_000))
      assert.deepInclude(repeated.json, { added: 1, known: 19_999, failed: 0 })
      assert.deepInclude((yield* upload("")).json, { added: 0, known: 0, failed: 0 })
      assert.strictEqual((yield* list()).meta.total, 1)
    })
  )

  it.effect("go to CSV however many there are", () =>
    Effect.gen(function* () {
      const { download, id: owner } = yield* person
      const sql = yield* SqlClient
      const count = 10_000
      yield* sql`INSERT INTO mail_suppressions (id, user_id, pattern, scope, reason)
        SELECT 'sup_' || left(md5(n || s.scope), 22), ${owner}, n || '@example.org', s.scope, 'manual'
        FROM generate_series(1, ${count / 2}) AS n, (VALUES ('all'), ('bulk')) AS s(scope)`
      const { status, text } = yield* download
      assert.strictEqual(status, 200, text)
      const lines = text.trimEnd().split("\r\n")
      assert.lengthOf(lines, count + 1)
      assert.strictEqual(new Set(lines.map((line) => line.split(",").slice(0, 3).join())).size, count + 1)
    })
  )
})
