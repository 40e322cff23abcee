import { createECDH, randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { api, makeStage, sent, type Stage } from "../Stage.ts"

/** A browser's subscription at a public address: none is asked for anything before a message is sent. */
export const subscription = (path = randomBytes(12).toString("hex")) => {
  const ecdh = createECDH("prime256v1")
  return {
    endpoint: `https://93.184.216.34/push/${path}`,
    expirationTime: null,
    keys: {
      p256dh: ecdh.generateKeys("base64url"),
      auth: randomBytes(16).toString("base64url")
    }
  }
}
export type Subscription = ReturnType<typeof subscription>

/** The token of a new project's join link, and the project's id. */
export const openProject = Effect.fnUntraced(function* (stage: Stage, fields: object = {}) {
  const { ask } = yield* TestServer
  const id = yield* stage.project(fields)
  const link = yield* linkOf(stage, id)
  return { id, link, ask }
})

export const linkOf = ({ key }: Stage, id: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", `${api}/projects/${id}`, { key }), (answer) =>
      textOf(answer, "joinUrl").replace(/.*\//, "")
    )
  )

export const join = (link: string, json: object, key = "") =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `${api}/join/${link}`, { key, json: { timezone: "Europe/Berlin", ...json } })
  )

/** Joins with success; answers the subscriber's token and what else was told. */
export const joined = (link: string, json: object, key = "") =>
  Effect.map(join(link, json, key), (answer) => {
    if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
    const told = answer.json as {
      readonly settingsUrl: string
      readonly secret?: string
      readonly channel?: { readonly id: string; readonly state: string; readonly kind: string }
    }
    return { ...told, token: told.settingsUrl.replace(/.*#/, "") }
  })

export interface SettingsBody {
  readonly id: string
  readonly name: string
  readonly timezone: string
  readonly delivery: string
  readonly digestAt: string
  readonly quietFrom: string | null
  readonly quietTo: string | null
  readonly highPasses: boolean
  readonly held: number
  readonly nextDigestAt: string | null
  readonly quietUntil: string | null
  readonly pushKey: string
  readonly projects: ReadonlyArray<{ readonly id: string; readonly name: string; readonly delivery: string }>
  readonly channels: ReadonlyArray<{
    readonly id: string
    readonly kind: string
    readonly name: string
    readonly state: string
    readonly host: string
  }>
}

export const settingsOf = (token: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", `${api}/subscriber`, { key: token }), (answer) => {
      if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
      return answer.json as SettingsBody
    })
  )

/** A subscriber of a new project, by a browser. */
export const subscriber = Effect.gen(function* () {
  const stage = yield* makeStage
  const { ask, id, link } = yield* openProject(stage, { name: "Backups", description: "Of every night" })
  const push = subscription()
  const { channel, token } = yield* joined(link, { name: "Ada", push })
  const key = yield* stage.projectKey()
  const recipients = Effect.map(sent(key), (body) => body.recipients)
  const request = (method: string, path: string, json?: object) =>
    ask(method, `${api}/subscriber${path}`, { key: token, ...(json !== undefined && { json }) })
  return { ask, channel: channel?.id ?? "", id, key, link, push, recipients, request, stage, token }
})

/** Deliveries to a channel. */
export const rowsOf = (channel: string) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.orDie(sql<{ dropped: boolean }>`SELECT dropped_at IS NOT NULL AS dropped FROM deliveries
      WHERE channel_id = ${channel} ORDER BY message_id`)
  )
