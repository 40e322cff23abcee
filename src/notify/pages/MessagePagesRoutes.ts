import { Effect, Predicate } from "effect"
import type { Problem } from "#schemas/core/Problem.ts"
import { type KeyedExchange, openServing } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { byteAnswer } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { Attachments, type MessageFile } from "../attachments/Attachments.ts"
import { fileHeaders } from "./AttachmentPreview.ts"
import { renderedBody, renderedSource } from "./BodyRenderer.ts"
import { fileHead } from "./FileHead.ts"
import { type LinkedMessage, make as makeMessages } from "./MessageByLink.ts"
import { messagePage, type ShownMessage } from "./MessagePage.ts"
import { awayPage, goneFilePage, goneMessagePage, noFilePage, noMessagePage } from "./NotifyPage.ts"
import { entriesOf, sendPage } from "./SendPage.ts"

/** Heads of files that are read at once, for one page. */
const headsAtOnce = 4

const day = 86_400_000

interface Parts {
  readonly attachments: Attachments["Service"]
  readonly messages: Effect.Success<typeof makeMessages>
  readonly messageDays: number
}

type Handled = Effect.Effect<void, Problem, Workers>

/** The page of a message, and with `?source` its body as it was sent. */
const showPage =
  ({ attachments, messageDays, messages }: Parts) =>
  (exchange: KeyedExchange, message: LinkedMessage, token: string): Handled =>
    Effect.gen(function* () {
      const { bodyFormat: format, createdAt, id, owner } = message
      const text = message.bodyBytes > 0 ? yield* storeAway(messages.textOf(message)) : undefined
      const isSource = new URLSearchParams(exchange.request.query).has("source")
      const body: ShownMessage["body"] =
        text === undefined
          ? undefined
          : isSource
            ? { source: yield* renderedSource(owner, text) }
            : yield* renderedBody(owner, { text, format })
      const files = yield* Effect.forEach(
        yield* storeAway(attachments.ofMessage(id)),
        (file) =>
          Effect.map(fileHead(attachments, owner, file), (head) => ({
            ...file,
            expiresAtMillis: file.expiresAt.getTime(),
            head
          })),
        { concurrency: headsAtOnce }
      )
      const page = messagePage({
        ...message,
        path: `/n/m/${token}`,
        title: message.title ?? undefined,
        url: message.url ?? undefined,
        createdAtMillis: createdAt.getTime(),
        expiresAtMillis: createdAt.getTime() + messageDays * day,
        body,
        files
      })
      yield* sendPage(exchange, page)
    })

/** The name that a body is downloaded by. */
const rawName = (format: LinkedMessage["bodyFormat"], text: string): string => {
  if (format === "markdown") return "message.md"
  if (format === "log") return "message.log"
  return format === "json" || /^[[{][^]*[\]}]$/.test(text) ? "message.json" : "message.txt"
}

/** The body as it was sent, to be downloaded. */
const sendRaw =
  ({ messages }: Parts) =>
  (exchange: KeyedExchange, message: LinkedMessage): Handled =>
    Effect.gen(function* () {
      const text = yield* storeAway(messages.textOf(message))
      if (text === undefined) return yield* sendPage(exchange, noFilePage(message.project))
      const { contentType, headers } = fileHeaders("text/plain", rawName(message.bodyFormat, text))
      const disposition = contentDisposition("attachment", rawName(message.bodyFormat, text))
      exchange.send(
        200,
        entriesOf({
          ...headers,
          "content-disposition": disposition,
          "content-type": contentType,
          "cache-control": "private, no-cache"
        }),
        text
      )
    })

/** A file of a message. */
const sendFile =
  ({ attachments }: Parts) =>
  (exchange: KeyedExchange, message: LinkedMessage): Handled =>
    Effect.gen(function* () {
      const { project } = message
      const id = exchange.request.params["id"]
      const file = (yield* storeAway(attachments.ofMessage(message.id))).find((one) => one.id === id)
      if (file === undefined) return yield* sendPage(exchange, noFilePage(project))
      if (file.isExpired)
        return yield* sendPage(exchange, goneFilePage(project, file.filename, file.expiresAt.getTime()))
      yield* sendBytes(attachments, exchange, file)
    })

const sendBytes = Effect.fnUntraced(function* (
  attachments: Attachments["Service"],
  exchange: KeyedExchange,
  file: MessageFile
) {
  const { request } = exchange
  const { contentType, headers: own } = fileHeaders(file.contentType, file.filename)
  const answer = byteAnswer(
    { method: request.method, header: (name) => request.header(name) },
    {
      sizeBytes: file.size,
      contentType,
      etag: `"${file.sha256}"`,
      headers: { ...own, "cache-control": "private, no-cache" }
    }
  )
  const { range, status, text } = answer
  const headers = entriesOf(answer.headers)
  if (range === undefined) return exchange.send(status, headers, text)
  const content = yield* attachments.open(file)
  if (Predicate.isNumber(content)) exchange.sendFile(status, headers, { fd: content, ...range })
  else exchange.send(status, headers, content.subarray(range.from, range.to))
})

/** Pages of messages, their bodies and files, for those who have their link. Source: contract/notify#message-pages. */
export const messagePageRoutes = Effect.gen(function* () {
  const { messageDays } = yield* AppConfig
  const workers = yield* Workers
  const serve = yield* openServing
  const parts: Parts = { attachments: yield* Attachments, messages: yield* makeMessages, messageDays }
  const routeOf = (
    path: string,
    handle: (exchange: KeyedExchange, message: LinkedMessage, token: string) => Handled
  ): RawRoute => ({
    methods: ["GET"],
    path,
    cors: "configured",
    maxBodyBytes: 0,
    handle: serve(path, (exchange) =>
      Effect.gen(function* () {
        const token = exchange.request.params["token"] ?? ""
        const message = yield* storeAway(parts.messages.find(token))
        if (message === undefined) return yield* sendPage(exchange, noMessagePage())
        if (message === "gone") return yield* sendPage(exchange, goneMessagePage(messageDays))
        yield* handle(exchange, message, token)
      }).pipe(
        Effect.catch((problem) =>
          problem.status === 503 ? sendPage(exchange, awayPage()) : Effect.fail(problem)
        ),
        Effect.provideService(Workers, workers)
      )
    )
  })
  return [
    routeOf("/n/m/:token", showPage(parts)),
    routeOf("/n/m/:token/raw", sendRaw(parts)),
    routeOf("/n/m/:token/a/:id", sendFile(parts)),
    // Addresses that were cut or added to are in no log either.
    routeOf("/n/m/*", (exchange) => sendPage(exchange, noMessagePage()))
  ]
})
