import { setTimeout as sleep } from "node:timers/promises"
import { receive } from "../Reception.ts"
import { Fields, type SandboxAnswer, bad, type SandboxRequest } from "../SandboxRequest.ts"
import type { Handle } from "../SandboxParts.ts"
import { methods } from "./TelegramApi.ts"
import { chatsPage, startPage, telegramScript } from "./TelegramPage.ts"
import {
  type Chat,
  chatStates,
  nameIn,
  type Person,
  sandboxBot,
  type TelegramChats
} from "./TelegramChats.ts"

const ok = (json: unknown): SandboxAnswer => ({ status: 200, json })
const made = (json: unknown): SandboxAnswer => ({ status: 201, json })

/** A request of the bot: `/bot<token>/<method>`. */
const asked: Handle = async (parts, request, gone) => {
  const { telegram } = parts
  const [, method = ""] = request.parts
  if (method === "sendMessage") {
    const { answer, delayMillis } = receive(parts, telegram, telegram.chatIn(request), request)
    if (delayMillis > 0) await sleep(delayMillis, undefined, { ref: false })
    return answer
  }
  if (!(method in methods)) throw telegram.refusal(404, null)
  const fault = parts.faults.takeFor(method)
  if (fault !== undefined && fault.delayMillis > 0) await sleep(fault.delayMillis, undefined, { ref: false })
  if (fault?.cut === "before") return undefined
  if (fault?.status !== undefined && fault.status !== null)
    return telegram.refusal(fault.status, fault.retryAfter).answer
  const answer = method === "getMe" ? telegram.getMe(request) : await telegram.getUpdates(request, gone)
  return fault?.cut === "after" ? undefined : answer
}

const shown = (chat: Chat) => ({
  id: chat.id,
  type: chat.type,
  title: chat.title,
  state: chat.state,
  migratedTo: chat.migratedTo ?? null,
  messages: chat.messages
})

const chatIn = (chats: TelegramChats, { parts: [id = ""] }: SandboxRequest): Chat => chats.known(Number(id))

/** The one that the field `person` names, else somebody new. */
const personIn = (chats: TelegramChats, fields: Fields): Person => {
  const id = fields.integer("person", 1, Number.MAX_SAFE_INTEGER)
  return id === undefined ? chats.addPerson(nameIn(fields, "name") ?? "Ada") : chats.person(id)
}

const write: Handle = ({ telegram: { chats } }, request) => {
  const fields = new Fields(request.body)
  const text = fields.text("text", /^[^]{1,4096}$/u, "expected 1 to 4096 characters")
  if (text === undefined) throw bad("text: is required")
  const chat = chatIn(chats, request)
  const isOwn = chat.type === "private" && fields.integer("person", 1, Number.MAX_SAFE_INTEGER) === undefined
  return made(
    chats.write(chat, isOwn ? chats.person(chat.id) : personIn(chats, fields), text, request.nowMillis)
  )
}

/** A person follows a link to the bot and presses start; with `group` they add the bot to a group that way. */
const start: Handle = ({ telegram: { chats } }, request) => {
  const fields = new Fields(request.body)
  const code = fields.text("code", /^[\w-]{1,64}$/u, "expected 1 to 64 characters of A-Z a-z 0-9 _ -")
  if (code === undefined) throw bad("code: is required")
  const group = fields.integer("group", -Number.MAX_SAFE_INTEGER, -1)
  const title = fields.text("groupTitle", /^[^\p{Cc}]{1,100}$/u, "expected 1 to 100 characters of one line")
  const person = personIn(chats, fields)
  if (group === undefined && title === undefined) {
    const chat = chats.known(person.id)
    chats.write(chat, person, `/start ${code}`, request.nowMillis)
    return made({ person, chat: shown(chat) })
  }
  const chat = group === undefined ? chats.addGroup(title ?? "", "group") : chats.known(group)
  chats.change(chat, "active", request.nowMillis)
  chats.write(chat, person, `/start@${sandboxBot.username} ${code}`, request.nowMillis)
  return made({ person, chat: shown(chat) })
}

const change: Handle = ({ telegram: { chats } }, request) => {
  const chat = chatIn(chats, request)
  const state = new Fields(request.body).oneOf("state", chatStates)
  if (state !== undefined) chats.change(chat, state, request.nowMillis)
  return ok(shown(chat))
}

const chat = "/telegram/chats/(-?\\d{1,15})"

/** Made-up people and groups, for whom anybody may speak, and the Bot API. */
export const telegramRoutes: ReadonlyArray<readonly [method: string, path: string, handle: Handle]> = [
  ["POST", "/bot([\\w:-]{1,100})/(\\w{1,40})", asked],
  ["GET", "/bot([\\w:-]{1,100})/(\\w{1,40})", asked],
  ["GET", "/telegram", ({ telegram: { chats } }) => chatsPage(chats.chats)],
  ["GET", "/telegram.js", telegramScript],
  [
    "GET",
    `/t\\.me/${sandboxBot.username}`,
    ({ telegram: { chats } }, { url: { searchParams } }) => {
      const group = searchParams.get("startgroup")
      return startPage(group ?? searchParams.get("start") ?? "", group !== null, chats.people)
    }
  ],
  [
    "POST",
    "/telegram/people",
    ({ telegram: { chats } }, { body }) => made(chats.addPerson(nameIn(new Fields(body), "name") ?? "Ada"))
  ],
  [
    "GET",
    "/telegram/people",
    ({ telegram: { chats } }) => ok({ bot: sandboxBot.username, people: chats.people })
  ],
  [
    "POST",
    "/telegram/groups",
    ({ telegram: { chats } }, { body }) =>
      made(shown(chats.addGroup(nameIn(new Fields(body), "title") ?? "A group", "group")))
  ],
  ["POST", "/telegram/start", start],
  [
    "GET",
    "/telegram/chats",
    ({ telegram: { chats } }) => ok({ unconfirmed: chats.unconfirmed, chats: chats.chats.map(shown) })
  ],
  ["GET", chat, ({ telegram: { chats } }, request) => ok(shown(chatIn(chats, request)))],
  ["PATCH", chat, change],
  ["POST", `${chat}/messages`, write],
  [
    "POST",
    `${chat}/supergroup`,
    ({ telegram: { chats } }, request) =>
      made(shown(chats.migrate(chatIn(chats, request), request.nowMillis)))
  ],
  [
    "POST",
    "/telegram/renumber",
    ({ telegram: { chats } }) => {
      chats.renumber()
      return { status: 204 }
    }
  ],
  [
    "DELETE",
    "/telegram/chats",
    ({ telegram }) => {
      telegram.chats.clear()
      telegram.pace.clear()
      return { status: 204 }
    }
  ]
]
