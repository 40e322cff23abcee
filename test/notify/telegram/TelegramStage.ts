import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { sandboxOfServer } from "#test/notify/Sandbox.ts"
import { api, makeStage, sent } from "#test/notify/Stage.ts"
import { linkOf } from "#test/notify/subscribers/SubscriberStage.ts"
import { TelegramPeople } from "./TelegramPeople.ts"

/** The code in an address that the server made. */
export const codeIn = (url: string): string => url.replace(/.*=/, "")

/** A code for a project's link; with a token, of that subscriber. */
export const codeFor = Effect.fnUntraced(function* (link: string, key = "") {
  const { ask } = yield* TestServer
  const answer = yield* ask("POST", `${api}/join/${link}/telegram`, {
    key,
    json: { name: "Ada", timezone: "Europe/Berlin" }
  })
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
  return { id: textOf(answer, "id"), code: codeIn(textOf(answer, "startUrl")) }
})

/** A project with a link, a key that sends to it, and the sandbox's people. */
export const makeProject = Effect.gen(function* () {
  const stage = yield* makeStage
  const project = yield* stage.project({ name: "Backups" })
  const link = yield* linkOf(stage, project)
  const key = yield* stage.projectKey({ rateLimitPerMinute: 6_000 })
  const people = new TelegramPeople(yield* sandboxOfServer)
  const send = (fields: object = {}) =>
    Effect.map(sent(key, fields), ({ messages: [message], recipients }) => ({
      id: message?.id ?? "",
      recipients
    }))
  return { stage, project, link, key, people, send }
})

export interface ChannelRow {
  readonly id: string
  readonly subscriber_id: string
  readonly state: string
  readonly name: string
  readonly target: { readonly chatId: number; readonly isGroup: boolean }
}

/** The channels of a chat, of which there is one at most. */
export const channelsOf = (chat: number) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.orDie(sql<ChannelRow>`SELECT id, subscriber_id, state, name, target FROM channels
      WHERE kind = 'telegram' AND address = ${String(chat)}`)
  )
