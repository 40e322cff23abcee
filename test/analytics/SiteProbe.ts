import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer, type Answer, type Asked, textOf } from "#test/harness/TestServer.ts"

/** A site of a running server, and reads of it. */
export interface SiteProbe {
  readonly id: string
  readonly secret: string
  /** sends events as a server; all of them have to be stored */
  readonly collect: (events: ReadonlyArray<object>) => Effect.Effect<void>
  /** sends past events, in one part of an import; all of them have to be stored */
  readonly importLines: (name: string, lines: ReadonlyArray<string>, offset?: number) => Effect.Effect<void>
  /** `GET /api/v1/sites/:id/<rest>` */
  readonly read: (rest: string, asked?: Asked) => Effect.Effect<Answer>
  /** `GET /api/v1/public/sites/:id/<rest>`, without a key */
  readonly readPublic: (rest: string) => Effect.Effect<Answer>
}

/** Makes a site; its owner is the administrator unless a key is given. */
export const makeSite = (fields: object = {}, key?: string): Effect.Effect<SiteProbe, never, TestServer> =>
  Effect.gen(function* () {
    const { adminKey, ask } = yield* TestServer
    const owner = { key: key ?? adminKey }
    const json = { name: "Site", domain: "example.com", ...fields }
    const made = yield* ask("POST", "/api/v1/sites", { ...owner, json })
    const { id } = (made.json as { site: { id: string } }).site
    const secret = textOf(made, "secret")
    return {
      id,
      secret,
      collect: (events) =>
        Effect.map(ask("POST", "/api/v1/collect", { key: secret, json: events }), (answer) => {
          assert.deepInclude(answer.json, { accepted: events.length }, JSON.stringify(answer.json))
        }),
      importLines: (name, lines, offset = 0) =>
        Effect.map(
          ask("POST", `/api/v1/sites/${id}/import?import=${name}&offset=${offset}`, {
            ...owner,
            headers: { "content-type": "application/x-ndjson" },
            body: lines.join("\n")
          }),
          (answer) => {
            assert.deepInclude(answer.json, { stored: lines.length, failed: 0 }, JSON.stringify(answer.json))
          }
        ),
      read: (rest, asked) => ask("GET", `/api/v1/sites/${id}/${rest}`, { ...owner, ...asked }),
      readPublic: (rest) => ask("GET", `/api/v1/public/sites/${id}/${rest}`, { key: "" })
    }
  })

/** The rows of a breakdown as `[value, visitors, pageviews, count]`. */
export const rowsOf = (answer: Answer): ReadonlyArray<ReadonlyArray<unknown>> => {
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.json))
  const { rows } = answer.json as { rows: ReadonlyArray<Record<string, unknown>> }
  return rows.map((row) => {
    assert.deepStrictEqual(Object.keys(row).sort(), ["count", "pageviews", "value", "visitors"])
    return [row["value"], row["visitors"], row["pageviews"], row["count"]]
  })
}

export const statusAndBody = ({ json, status }: Answer): readonly [number, unknown] => [status, json]
