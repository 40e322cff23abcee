import { Predicate } from "effect"
import type { Judgement, Peer } from "../Peer.ts"
import { jsonOf, type SandboxAnswer, SandboxRefusal, type SandboxRequest } from "../SandboxRequest.ts"
import {
  botUser,
  type Chat,
  type ChatMessage,
  chatOf,
  sandboxBot,
  type TelegramChats,
  writable
} from "./TelegramChats.ts"
import { TelegramPace } from "./TelegramPace.ts"
import { TelegramRefusal } from "./TelegramRefusal.ts"
import { readText } from "./TelegramText.ts"

/** Telegram cuts longer waits of `getUpdates`. */
const timeoutSecondsMax = 50
const updatesMax = 100
const buttonsMax = 100

type Parameters = Readonly<Record<string, unknown>>

const ok = (result: unknown): SandboxAnswer => ({ status: 200, json: { ok: true, result } })

/** Telegram's Bot API, as far as a bot that notifies needs it. Source: core.telegram.org/bots/api. */
export class TelegramApi implements Peer {
  readonly kind = "telegram"
  readonly chats: TelegramChats
  readonly pace = new TelegramPace()
  /** ends the wait of the one reader of updates */
  #reader: (() => void) | undefined

  constructor(chats: TelegramChats) {
    this.chats = chats
  }

  /** A chat by its id, or a method by its name: faults are ordered for either. */
  has(id: string): boolean {
    return id in methods || (/^-?\d{1,15}$/u.test(id) && this.chats.find(Number(id)) !== undefined)
  }

  /** The chat of a message: of no other request. */
  chatIn(request: SandboxRequest): string {
    return String(parametersOf(request)["chat_id"] ?? "")
  }

  /** of `sendMessage` */
  judge(_: string, request: SandboxRequest): Judgement {
    const parameters = parametersOf(request)
    const chatId = Number(parameters["chat_id"] ?? Number.NaN)
    const base = { messageId: undefined, headers: {}, vapid: null, signed: null, payload: parameters }
    try {
      authorized(request)
      const chat = writable(this.chats, chatId)
      const text = readText(parameters["text"], parameters["parse_mode"], parameters["entities"])
      const buttons = buttonsIn(parameters["reply_markup"])
      this.pace.take(chat.id, chat.type !== "private", request.nowMillis)
      const accept = (): SandboxAnswer =>
        ok(sent(chat, this.chats.post(chat, text, buttons, request.nowMillis)))
      return {
        ...base,
        channel: String(chat.id),
        outcome: { _tag: "Taken", status: 200, state: null, accept }
      }
    } catch (error) {
      if (!(error instanceof SandboxRefusal)) throw error
      const channel = this.chats.find(chatId) === undefined ? null : String(chatId)
      return { ...base, channel, outcome: { _tag: "Refused", refusal: error } }
    }
  }

  /** A fault on order, in Telegram's form. */
  refusal(status: number, retryAfter: string | null): SandboxRefusal {
    return new TelegramRefusal(
      status,
      `${status} was ordered`,
      retryAfter === null ? undefined : { retry_after: Number(retryAfter) }
    )
  }

  getMe(request: SandboxRequest): SandboxAnswer {
    authorized(request)
    return ok({ ...botUser, can_join_groups: true, can_read_all_group_messages: false })
  }

  /** Waits for updates; the request that waits already is ended by a newer one. `gone` is of the client. */
  async getUpdates(request: SandboxRequest, gone: AbortSignal): Promise<SandboxAnswer> {
    authorized(request)
    const parameters = parametersOf(request)
    const [offset, limit, timeout] = [
      integerIn(parameters, "offset"),
      integerIn(parameters, "limit"),
      integerIn(parameters, "timeout")
    ]
    const allowed = allowedIn(parameters)
    const most = Math.min(Math.max(limit || updatesMax, 1), updatesMax)
    const waitMillis = Math.min(Math.max(timeout, 0), timeoutSecondsMax) * 1_000
    this.#reader?.()
    const read = () => this.chats.updates(offset, most, allowed)
    if (read().length === 0 && waitMillis > 0) {
      const isAlone = await this.#next(AbortSignal.any([gone, AbortSignal.timeout(waitMillis)]))
      if (!isAlone)
        throw new TelegramRefusal(
          409,
          "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
        )
    }
    return ok(read())
  }

  /** Until an update comes or the time is over; false: another reader came. */
  #next(end: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isAlone: boolean): void => {
        stop()
        if (this.#reader === taken) this.#reader = undefined
        resolve(isAlone)
      }
      const stop = this.chats.wait(() => finish(true))
      const taken = (): void => finish(false)
      this.#reader = taken
      end.addEventListener("abort", () => finish(true))
    })
  }
}

/** Methods for which faults can be ordered. */
export const methods = { getMe: true, getUpdates: true, sendMessage: true } as const

const authorized = ({ parts: [token] }: SandboxRequest): void => {
  if (token !== sandboxBot.token) throw new TelegramRefusal(401, "Unauthorized")
}

/** Of the query and the body: JSON or a form, whose values are text. */
const parametersOf = ({ body, headers, url }: SandboxRequest): Parameters => {
  const query = Object.fromEntries(url.searchParams)
  if (body.length === 0) return query
  if (/^application\/x-www-form-urlencoded\b/iu.test(headers["content-type"] ?? ""))
    return { ...query, ...Object.fromEntries(new URLSearchParams(body.toString())) }
  const json = jsonOf(body)
  return Predicate.isReadonlyObject(json) ? { ...query, ...json } : query
}

const integerIn = (parameters: Parameters, name: string): number => {
  const value = Number(parameters[name] ?? 0)
  if (!Number.isSafeInteger(value)) throw new TelegramRefusal(400, `Bad Request: can't parse "${name}"`)
  return value
}

const allowedIn = ({ allowed_updates: value }: Parameters): ReadonlySet<string> | undefined => {
  const list: unknown = typeof value === "string" ? jsonOf(Buffer.from(value)) : value
  return Array.isArray(list) && list.length > 0 ? new Set(list.map(String)) : undefined
}

const invalidButton = (url: string, problem: string): TelegramRefusal =>
  new TelegramRefusal(400, `Bad Request: inline keyboard button URL '${url}' is invalid: ${problem}`)

/** Buttons with addresses, the only ones that are known here. */
const buttonsIn = (markup: unknown): ChatMessage["buttons"] => {
  const value: unknown = typeof markup === "string" ? jsonOf(Buffer.from(markup)) : markup
  if (value === undefined || value === null) return []
  const rows = Predicate.isReadonlyObject(value) ? value["inline_keyboard"] : undefined
  if (!Array.isArray(rows)) throw new TelegramRefusal(400, "Bad Request: object expected as reply markup")
  return rows
    .flat()
    .slice(0, buttonsMax)
    .map((button: unknown) => {
      const { text, url } = Predicate.isReadonlyObject(button) ? button : {}
      if (typeof text !== "string" || text.trim() === "")
        throw new TelegramRefusal(400, "Bad Request: text buttons are unallowed in the inline keyboard")
      if (typeof url !== "string") throw new TelegramRefusal(400, "Bad Request: BUTTON_TYPE_INVALID")
      const address = URL.parse(url)
      if (address === null || !/^https?:$/u.test(address.protocol))
        throw invalidButton(url, "Unsupported URL protocol")
      if (!address.hostname.includes(".")) throw invalidButton(url, "Wrong HTTP URL")
      return { text, url }
    })
}

const sent = (chat: Chat, { at, entities, messageId, text }: ChatMessage) => ({
  message_id: messageId,
  from: botUser,
  chat: chatOf(chat),
  date: Math.floor(Date.parse(at) / 1_000),
  text,
  ...(entities.length > 0 && { entities })
})
