import { setTimeout as sleep } from "node:timers/promises"
import type { ChatWebhooks } from "./ChatWebhooks.ts"
import type { Entry, Inbox } from "./Inbox.ts"
import { pageAnswer, scriptAnswer, styleAnswer } from "./InboxPage.ts"
import { sandboxLimits as limits } from "./Limits.ts"
import type { Peer } from "./Peer.ts"
import { receive } from "./Reception.ts"
import type { Handle, Parts } from "./SandboxParts.ts"
import {
  Fields,
  queryInteger,
  type SandboxAnswer,
  SandboxRefusal,
  type SandboxRequest
} from "./SandboxRequest.ts"
import { telegramRoutes } from "./telegram/TelegramRoutes.ts"
import type { Webhooks } from "./Webhooks.ts"

const ok = (json: unknown): SandboxAnswer => ({ status: 200, json })
const made = (json: unknown): SandboxAnswer => ({ status: 201, json })
const done: SandboxAnswer = { status: 204 }
const nothing = (): SandboxRefusal => new SandboxRefusal(404, "there is nothing here")

const fieldsOf = ({ body }: SandboxRequest): Fields => new Fields(body)
const idOf = ({ parts: [id = ""] }: SandboxRequest): string => id

/** A list by `after` (a number of elements) and `limit`. */
const page = (url: URL) => ({
  after: queryInteger(url, "after", { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, otherwise: 0 }),
  limit: queryInteger(url, "limit", { minimum: 1, maximum: limits.listed, otherwise: limits.listed })
})

/** Those of `arriving`; all others are the sandbox's own. */
const channels = new Set<Handle>()

/** A request to a channel. */
const arriving = (peerOf: (parts: Parts) => Peer): Handle => {
  const handle: Handle = async (parts, request) => {
    const { answer, delayMillis } = receive(parts, peerOf(parts), idOf(request), request)
    if (delayMillis > 0) await sleep(delayMillis, undefined, { ref: false })
    return answer
  }
  channels.add(handle)
  return handle
}

const readInbox: Handle = async ({ inbox, nowMillis, push }, { url }, gone) => {
  const { after, limit } = page(url)
  const waitMillis = queryInteger(url, "waitMillis", {
    minimum: 0,
    maximum: limits.delayMillis,
    otherwise: 0
  })
  const channel = url.searchParams.get("channel")
  const accepted = url.searchParams.get("accepted")
  const isMeant = (entry: Entry): boolean =>
    (channel === null || entry.channel === channel) && (accepted !== "true" || entry.accepted)
  push.expire(nowMillis())
  let entries = inbox.list(after, limit, isMeant)
  if (entries.length === 0 && waitMillis > 0) {
    await nextEntry(inbox, isMeant, AbortSignal.any([gone, AbortSignal.timeout(waitMillis)]))
    entries = inbox.list(after, limit, isMeant)
  }
  return ok({ sandbox: true, ...inbox.counts, next: entries.at(-1)?.seq ?? after, entries })
}

const nextEntry = (inbox: Inbox, isMeant: (entry: Entry) => boolean, end: AbortSignal): Promise<void> => {
  if (inbox.waiting >= limits.waiters)
    throw new SandboxRefusal(429, `at most ${limits.waiters} requests wait at once`)
  return new Promise((resolve) => {
    const stop = inbox.wait(isMeant, () => {
      stop()
      resolve()
    })
    end.addEventListener("abort", () => {
      stop()
      resolve()
    })
  })
}

/** A subscription or webhook by its address or its id, a chat by its id, a method of Telegram by its name. */
const channelOf =
  ({ chats, origin, push, telegram, webhooks }: Parts) =>
  (target: string): string | undefined => {
    const id = target.startsWith(`${origin()}/`) ? target.slice(target.lastIndexOf("/") + 1) : target
    return [push, webhooks, telegram, ...chats].some((peer) => peer.has(id)) ? id : undefined
  }

const id = "([A-Za-z0-9_]{1,40})"

type Route = readonly [method: string, path: string, handle: Handle]

const chatOf =
  (kind: Peer["kind"]) =>
  ({ chats }: Parts): ChatWebhooks => {
    const chat = chats.find((one) => one.kind === kind)
    if (chat === undefined) throw nothing()
    return chat
  }

/** Webhooks of one service. */
const webhookRoutes = (path: string, of: (parts: Parts) => ChatWebhooks | Webhooks): ReadonlyArray<Route> => [
  ["POST", path, (parts, request) => made(of(parts).make(fieldsOf(request)))],
  [
    "GET",
    path,
    (parts, { url }) =>
      ok({ total: of(parts).size, webhooks: of(parts).list(page(url).after, page(url).limit) })
  ],
  ["DELETE", path, (parts) => (of(parts).clear(), done)],
  ["GET", `${path}/${id}`, (parts, request) => ok(of(parts).show(idOf(request)))],
  ["PATCH", `${path}/${id}`, (parts, request) => ok(of(parts).change(idOf(request), fieldsOf(request)))],
  ["DELETE", `${path}/${id}`, (parts, request) => (of(parts).remove(idOf(request)), done)],
  ["POST", `${path}/${id}`, arriving(of)]
]

const routes: ReadonlyArray<readonly [method: string, path: RegExp, handle: Handle]> = (
  [
    ["GET", "/", ({ inbox, origin }) => pageAnswer(inbox, origin())],
    ["GET", "/page.css", styleAnswer],
    ["GET", "/page.js", scriptAnswer],
    ["GET", "/inbox", readInbox],
    ["DELETE", "/inbox", ({ inbox }) => (inbox.clear(), done)],

    ["POST", "/push/subscriptions", ({ push }, request) => made(push.subscribe(fieldsOf(request)))],
    [
      "GET",
      "/push/subscriptions",
      ({ push }, { url }) =>
        ok({ total: push.size, subscriptions: push.list(page(url).after, page(url).limit) })
    ],
    ["DELETE", "/push/subscriptions", ({ push }) => (push.clear(), done)],
    ["GET", `/push/subscriptions/${id}`, ({ push }, request) => ok(push.show(idOf(request)))],
    [
      "PATCH",
      `/push/subscriptions/${id}`,
      ({ push }, request) => ok(push.change(idOf(request), fieldsOf(request), request.nowMillis))
    ],
    ["DELETE", `/push/subscriptions/${id}`, ({ push }, request) => (push.remove(idOf(request)), done)],
    [
      "DELETE",
      "/push/messages/(\\d{1,15})",
      ({ push }, request) => {
        if (!push.cancel(Number(idOf(request)))) throw new SandboxRefusal(404, "no such message waits")
        return done
      }
    ],
    ["POST", `/push/${id}`, arriving(({ push }) => push)],

    ...webhookRoutes("/webhooks", ({ webhooks }) => webhooks),
    ...webhookRoutes("/slack", chatOf("slack")),
    ...webhookRoutes("/discord", chatOf("discord")),
    ...telegramRoutes,

    ["POST", "/faults", (parts, request) => made(parts.faults.order(fieldsOf(request), channelOf(parts)))],
    ["GET", "/faults", ({ faults }) => ok({ faults: faults.list })],
    ["DELETE", "/faults", ({ faults }) => (faults.clear(), done)],
    [
      "DELETE",
      `/faults/${id}`,
      ({ faults }, request) => {
        if (!faults.remove(idOf(request))) throw new SandboxRefusal(404, "no such fault is on order")
        return done
      }
    ]
  ] satisfies ReadonlyArray<Route>
).map(([method, path, handle]) => [method, new RegExp(`^${path}$`, "u"), handle])

/** The first that fits: `/push/subscriptions` is no channel, since ids have another form. */
export const routeOf = (
  method: string,
  path: string
): { readonly handle: Handle; readonly isChannel: boolean; readonly parts: ReadonlyArray<string> } => {
  const fitting = routes.flatMap(([of, pattern, handle]) => {
    const match = pattern.exec(path)
    return match === null ? [] : [{ of, handle, parts: match.slice(1) }]
  })
  const found = fitting.find(({ of }) => of === method)
  if (found !== undefined) return { ...found, isChannel: channels.has(found.handle) }
  if (fitting.length === 0) throw nothing()
  const allow = [...new Set(fitting.map(({ of }) => of))].join(", ")
  throw new SandboxRefusal(405, `method: expected ${allow}`, { headers: { allow } })
}
