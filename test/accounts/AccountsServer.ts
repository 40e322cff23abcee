import { Context, Effect, Layer, Predicate, References } from "effect"
import { HttpServer } from "effect/http"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import type { ConfigChanges } from "#src/Config.ts"
import * as Layers from "#src/Layers.ts"
import { TestStores } from "#test/stores/TestStores.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** the decoded JSON; undefined where the body is none */
  readonly json: unknown
}

export interface Asked {
  /** the bearer key; the administrator's where absent, none where "" */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly body?: NonNullable<RequestInit["body"]>
}

export interface Person {
  readonly id: string
  /** an account key of theirs */
  readonly key: string
}

/** The whole server over real stores of its own, in this process, and a client that asks it over HTTP. */
export class AccountsServer extends Context.Service<
  AccountsServer,
  {
    readonly url: string
    readonly adminKey: string
    readonly ask: (method: string, path: string, asked?: Asked) => Effect.Effect<Answer>
    /** a key made by the API: its secret and its id */
    readonly makeKey: (
      fields?: object,
      by?: string
    ) => Effect.Effect<{ readonly id: string; readonly key: string }>
    readonly makeUser: (role?: "user" | "admin") => Effect.Effect<Person>
  }
>()("signalbox/test/AccountsServer") {
  static readonly layer = (changes: ConfigChanges = {}) =>
    Layer.effect(AccountsServer, make).pipe(
      Layer.provideMerge(Layers.layer),
      Layer.provideMerge(TestStores.layerWith(changes)),
      Layer.provide(Layer.succeed(References.MinimumLogLevel, "None"))
    )
}

const make = Effect.gen(function* () {
  const { address } = yield* HttpServer.HttpServer
  const { newAdminKey: adminKey = "" } = yield* FirstBoot
  const url = `http://127.0.0.1:${Predicate.hasProperty(address, "port") ? String(address.port) : ""}`

  const ask = (method: string, path: string, asked: Asked = {}): Effect.Effect<Answer> =>
    Effect.promise(async () => {
      const key = asked.key ?? adminKey
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
          ...(asked.json === undefined ? {} : { "content-type": "application/json" }),
          ...asked.headers
        },
        body: asked.json === undefined ? (asked.body ?? null) : JSON.stringify(asked.json)
      })
      const bytes = new Uint8Array(await response.arrayBuffer())
      const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
      const json: unknown = isJson && bytes.length > 0 ? JSON.parse(Buffer.from(bytes).toString()) : undefined
      return { status: response.status, headers: response.headers, bytes, json }
    })

  let people = 0
  const makeKey = (fields: object = {}, by: string = adminKey) =>
    Effect.map(
      ask("POST", "/api/v1/keys", { key: by, json: { name: "test", kind: "account", ...fields } }),
      (answer) => ({ id: textOf(answer, "id"), key: textOf(answer, "key") })
    )
  return {
    url,
    adminKey,
    ask,
    makeKey,
    makeUser: (role: "user" | "admin" = "user") =>
      Effect.gen(function* () {
        const email = `person-${++people}@example.org`
        const made = yield* ask("POST", "/api/v1/admin/users", {
          json: { email, name: `Person ${people}`, role }
        })
        const id = textOf(made, "id")
        const { key } = yield* makeKey({ user_id: id })
        return { id, key }
      })
  }
})

/** A text of an answer's JSON object; fails where there is none. */
export const textOf = ({ json, status }: Answer, name: string): string => {
  const value = Predicate.hasProperty(json, name) ? json[name] : undefined
  if (!Predicate.isString(value)) throw new Error(`no text ${name} in ${status} ${JSON.stringify(json)}`)
  return value
}
