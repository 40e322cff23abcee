import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type KeyedExchange, openServing } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import type { Priority } from "#schemas/notify/SendTerms.ts"
import { textOf } from "#streams/notify/channels/NoticeText.ts"
import { Links } from "../Links.ts"
import { digestPage, type ShownDigest } from "./DigestPage.ts"
import { awayPage, goneMessagePage, noMessagePage } from "./NotifyPage.ts"
import { sendPage } from "./SendPage.ts"

const day = 86_400_000

interface Found {
  readonly items: number
  readonly messages: ReadonlyArray<string> | null
  readonly createdAt: Date
  /** it is older than messages are kept */
  readonly isOver: boolean
}

interface Item {
  readonly id: string
  readonly project: string
  readonly app: string
  readonly title: string | null
  readonly message: string
  readonly url: string | null
  readonly priority: Priority
  readonly attachments: number
  readonly bodyBytes: number
  readonly createdAt: Date
}

const form = /^[0-9A-Za-z]{40}$/

/** Finds digests by the tokens of their links. */
const finding = Effect.gen(function* () {
  const sql = yield* SqlClient
  const links = yield* Links
  const { messageDays } = yield* AppConfig
  const shown = ({
    app,
    attachments,
    bodyBytes,
    createdAt,
    id,
    message,
    priority,
    project,
    title,
    url
  }: Item) => ({
    project,
    app,
    title: title ?? undefined,
    text: textOf({ message, hasPaperclip: attachments > 0 }),
    url: url ?? undefined,
    priority,
    createdAtMillis: createdAt.getTime(),
    page: bodyBytes > 0 || attachments > 0 ? (`/n/m/${links.message(id).token}` as const) : undefined
  })
  /** "gone": it is older than messages are kept. undefined: there is none, or none of its messages is there. */
  return Effect.fnUntraced(function* (token: string) {
    if (!form.test(token)) return undefined
    const [found] = yield* sql<Found>`SELECT items, messages, created_at AS "createdAt",
        created_at + ${messageDays} * interval '1 day' <= now() AS "isOver"
      FROM digests WHERE link_hash = ${hashOf(token)}`
    if (found === undefined) return undefined
    if (found.isOver) return "gone" as const
    const messages = found.messages ?? []
    const items =
      yield* sql<Item>`SELECT m.id, p.name AS project, m.app, m.title, m.message, m.url, m.priority, m.attachments,
        m.body_bytes AS "bodyBytes", m.created_at AS "createdAt"
      FROM messages m JOIN projects p ON p.id = m.project_id AND p.deleted_at IS NULL
      WHERE m.id = ANY(${messages}::text[]) AND m.created_at + ${messageDays} * interval '1 day' > now() ORDER BY m.seq`
    if (items.length === 0) return undefined
    return {
      items: items.map(shown),
      more: found.items - messages.length,
      createdAtMillis: found.createdAt.getTime(),
      expiresAtMillis: found.createdAt.getTime() + messageDays * day
    } satisfies ShownDigest
  })
})

/** Pages of digests, for those who have their link. Source: contract/notify#digests. */
export const digestPageRoutes = Effect.gen(function* () {
  const { messageDays } = yield* AppConfig
  const serve = yield* openServing
  const find = yield* finding
  const show = Effect.fnUntraced(
    function* (exchange: KeyedExchange) {
      const digest = yield* storeAway(find(exchange.request.params["token"] ?? ""))
      yield* sendPage(
        exchange,
        digest === undefined
          ? noMessagePage()
          : digest === "gone"
            ? goneMessagePage(messageDays)
            : digestPage(digest)
      )
    },
    (shown, exchange) =>
      Effect.catch(shown, (problem) =>
        problem.status === 503 ? sendPage(exchange, awayPage()) : Effect.fail(problem)
      )
  )
  const routeOf = (path: string): RawRoute => ({
    methods: ["GET"],
    path,
    cors: "configured",
    maxBodyBytes: 0,
    handle: serve(path, show)
  })
  // Addresses that were cut or added to are in no log either: none of them is a token.
  return [routeOf("/n/d/:token"), routeOf("/n/d/*")]
})
