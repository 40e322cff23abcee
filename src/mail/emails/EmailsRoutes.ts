import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { mailListDefault } from "#schemas/mail/Email.ts"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import { storeAway, storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Workers } from "#src/infra/workers/Workers.ts"
import { Emails } from "./Emails.ts"
import { Inbox } from "./Inbox.ts"
import { inboxPage, inboxPageHeaders, readHtml } from "./InboxPage.ts"
import { MailRetries } from "./MailRetries.ts"
import { MailStats } from "./MailStats.ts"

const asOwner = <A, E, R>(use: (owner: string) => Effect.Effect<A, E, R>) =>
  storeAway(Effect.flatMap(CurrentKey, ({ ownerId }) => use(ownerId)))

/** A browser must not take a stranger's mail for a page. */
const rawAnswer = (bytes: Uint8Array) =>
  HttpServerResponse.uint8Array(bytes, {
    contentType: "message/rfc822",
    headers: { "content-disposition": "attachment", "x-content-type-options": "nosniff" }
  })

const emails = HttpApiBuilder.group(
  MailRoomApi,
  "emails",
  Effect.fnUntraced(function* (handlers) {
    const log = yield* Emails
    const { retry } = yield* MailRetries
    const stats = yield* MailStats
    return handlers
      .handle("listEmails", ({ query }) =>
        asOwner((owner) => log.list(owner, query, pageOf(query, mailListDefault)))
      )
      .handle("readEmail", ({ params, query }) =>
        Effect.flatMap(CurrentKey, ({ ownerId }) => log.read(ownerId, params.id, query.wait ?? 0))
      )
      .handle("listEmailAttempts", ({ params }) =>
        Effect.map(
          asOwner((owner) => log.attempts(owner, params.id)),
          (attempts) => ({ attempts })
        )
      )
      .handle("readRawEmail", ({ params }) =>
        Effect.map(
          asOwner((owner) => log.raw(owner, params.id)),
          rawAnswer
        )
      )
      .handle("cancelEmail", ({ params }) =>
        asOwner((owner) => Effect.andThen(log.cancel(owner, params.id), log.read(owner, params.id, 0)))
      )
      .handle("retryEmail", ({ params }) =>
        storeAwayAbandoned(Effect.flatMap(CurrentKey, (caller) => retry(caller, params.id)))
      )
      .handle("readEmailStats", ({ query }) => asOwner((owner) => stats.of(owner, query)))
  })
)

const inbox = HttpApiBuilder.group(
  MailRoomApi,
  "mailInbox",
  Effect.fnUntraced(function* (handlers) {
    const mails = yield* Inbox
    const workers = yield* Workers
    const readPage = Effect.fnUntraced(function* (owner: string, id: string) {
      const html = yield* readHtml(workers, owner, yield* mails.read(owner, id))
      if (html === undefined) return yield* notFound("HTML")
      return HttpServerResponse.text(inboxPage(html), {
        contentType: "text/html; charset=utf-8",
        headers: inboxPageHeaders
      })
    })
    return handlers
      .handle("listInbox", ({ query }) =>
        asOwner((owner) => mails.list(owner, pageOf(query, mailListDefault)))
      )
      .handle("readInboxMail", ({ params }) =>
        Effect.map(
          asOwner((owner) => mails.read(owner, params.id)),
          rawAnswer
        )
      )
      .handle("readInboxHtml", ({ params }) => asOwner((owner) => readPage(owner, params.id)))
      .handle("clearInbox", () =>
        Effect.map(
          asOwner((owner) => mails.clear(owner)),
          (deleted) => ({ deleted })
        )
      )
  })
)

export const layer = Layer.merge(emails, inbox)
