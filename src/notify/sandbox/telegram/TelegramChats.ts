import { bad, Fields, SandboxRefusal } from "../SandboxRequest.ts"
import { sandboxLimits as limits } from "../Limits.ts"
import { TelegramRefusal } from "./TelegramRefusal.ts"
import { commandsIn, type Entity, type FormattedText } from "./TelegramText.ts"

/** The bot of the sandbox. Any other token is unauthorized. */
export const sandboxBot = {
  id: 1_000_000_001,
  token: "1000000001:sandbox-sandbox-sandbox-sandbox-sand",
  username: "signalbox_sandbox_bot",
  name: "Signalbox (sandbox)"
} as const

export interface Person {
  readonly id: number
  readonly name: string
}

/** `blocked`: by the person, or the bot was put out of the group; `left`: it has not been in the group yet */
export const chatStates = ["active", "blocked", "deleted"] as const
type ChatState = (typeof chatStates)[number] | "new"

/** A message of a chat, by a person or the bot. */
export interface ChatMessage extends FormattedText {
  readonly messageId: number
  readonly from: string
  readonly isBot: boolean
  readonly at: string
  readonly buttons: ReadonlyArray<{ readonly text: string; readonly url: string }>
}

export interface Chat {
  readonly id: number
  readonly type: "private" | "group" | "supergroup"
  readonly title: string
  state: ChatState
  /** the supergroup that this group has become */
  migratedTo: number | undefined
  readonly messages: Array<ChatMessage>
}

/** An event of a chat, as `getUpdates` tells it. */
export interface Update {
  readonly update_id: number
  readonly [kind: string]: unknown
}

/** A message that somebody writes, beside its chat and its time. */
interface Written {
  readonly text?: string
  readonly entities?: ReadonlyArray<Entity>
  readonly migrate_to_chat_id?: number
  readonly migrate_from_chat_id?: number
}

const shownMax = 100

const firstMillis = Date.UTC(2026, 0)

/** The people of a made-up Telegram, their chats with the bot, and the updates that the bot has not confirmed. */
export class TelegramChats {
  readonly #people = new Map<number, Person>()
  readonly #chats = new Map<number, Chat>()
  #updates: Array<Update> = []
  readonly #told = new Set<() => void>()
  #lastPerson: number
  #lastGroup: number
  #lastSupergroup: number
  #lastUpdate: number
  #lastMessage = 0

  /**
   * A server remembers chats and its place in the updates of an earlier start, so numbers go on with the clock: by ten a second,
   * until 2033 as long as Telegram's are.
   */
  constructor(nowMillis: number) {
    const gone = Math.max(0, Math.floor((nowMillis - firstMillis) / 100))
    this.#lastPerson = 2_000_000_000 + gone
    this.#lastGroup = -4_000_000_000 - gone
    this.#lastSupergroup = -1_002_000_000_000 - gone
    this.#lastUpdate = 100_000_000 + gone
  }

  get people(): ReadonlyArray<Person> {
    return [...this.#people.values()]
  }

  get chats(): ReadonlyArray<Chat> {
    return [...this.#chats.values()]
  }

  /** A person, whose private chat has the same id. */
  addPerson(name: string): Person {
    if (this.#chats.size >= limits.channels) throw new SandboxRefusal(429, `at most ${limits.channels} chats`)
    const person = { id: ++this.#lastPerson, name }
    this.#people.set(person.id, person)
    this.#open(person.id, "private", name)
    return person
  }

  addGroup(title: string, type: "group" | "supergroup"): Chat {
    if (this.#chats.size >= limits.channels) throw new SandboxRefusal(429, `at most ${limits.channels} chats`)
    return this.#open(type === "group" ? --this.#lastGroup : --this.#lastSupergroup, type, title)
  }

  person(id: number): Person {
    const person = this.#people.get(id)
    if (person === undefined) throw bad("person: expected the id of a person")
    return person
  }

  /** undefined: there is none, or it was deleted */
  find(id: number): Chat | undefined {
    const chat = this.#chats.get(id)
    return chat?.state === "deleted" ? undefined : chat
  }

  known(id: number): Chat {
    const chat = this.#chats.get(id)
    if (chat === undefined) throw new SandboxRefusal(404, "there is no such chat")
    return chat
  }

  /** Has somebody write in a chat. In a group the bot hears of commands alone, as its privacy mode has it. */
  write(chat: Chat, person: Person, text: string, nowMillis: number): ChatMessage {
    if (chat.state === "deleted") throw new SandboxRefusal(409, "the chat is deleted")
    if (chat.type === "private" && person.id !== chat.id) throw bad("person: has another private chat")
    // Writing to a bot that was blocked takes the block back.
    if (chat.type === "private" && chat.state === "blocked") this.change(chat, "active", nowMillis)
    if (chat.type === "private") chat.state = "active"
    const entities = commandsIn(text)
    const message = this.#keep(chat, { text, entities }, person.name, nowMillis, false)
    const isHeard = chat.state === "active" && (chat.type === "private" || entities.length > 0)
    if (isHeard) this.#tell(chat, person, message.messageId, { text, entities }, nowMillis)
    return message
  }

  /** Blocks the bot, puts it out of a group, lets it in, or deletes the chat, of which the bot hears nothing. */
  change(chat: Chat, state: Chat["state"], nowMillis: number): void {
    const before = chat.state
    if (before === state) return
    chat.state = state
    if (state === "deleted" || before === "deleted") return
    const [person = { id: chat.id, name: chat.title }] = [this.#people.get(chat.id)]
    this.#add({
      my_chat_member: {
        chat: chatOf(chat),
        from: personOf(person),
        date: Math.floor(nowMillis / 1_000),
        old_chat_member: { user: botUser, status: before === "active" ? "member" : outside(chat, before) },
        new_chat_member: { user: botUser, status: state === "active" ? "member" : outside(chat, state) }
      }
    })
  }

  /** A group becomes a supergroup, which has another id: the bot hears of it in both. */
  migrate(chat: Chat, nowMillis: number): Chat {
    if (chat.type !== "group" || chat.migratedTo !== undefined)
      throw new SandboxRefusal(409, "expected a group that is no supergroup yet")
    const to = this.addGroup(chat.title, "supergroup")
    to.state = chat.state
    chat.migratedTo = to.id
    const [person] = this.people
    const by = person ?? { id: sandboxBot.id, name: "a member" }
    if (chat.state !== "active") return to
    this.#tell(chat, by, ++this.#lastMessage, { migrate_to_chat_id: to.id }, nowMillis)
    this.#tell(to, by, ++this.#lastMessage, { migrate_from_chat_id: chat.id }, nowMillis)
    return to
  }

  /** Of the bot. */
  post(chat: Chat, text: FormattedText, buttons: ChatMessage["buttons"], nowMillis: number): ChatMessage {
    return this.#keep(chat, text, sandboxBot.username, nowMillis, true, buttons)
  }

  /**
   * Those from `offset` on, the oldest first; those before it are confirmed and gone. A negative one counts from the end; one beyond
   * all that there was, as ids have begun anew, confirms nothing.
   */
  updates(offset: number, most: number, allowed: ReadonlySet<string> | undefined): ReadonlyArray<Update> {
    const from =
      offset < 0 ? (this.#updates.at(offset)?.update_id ?? 0) : offset > this.#lastUpdate + 1 ? 0 : offset
    this.#updates = this.#updates.filter(
      (update) =>
        update.update_id >= from &&
        (allowed === undefined || Object.keys(update).some((kind) => allowed.has(kind)))
    )
    return this.#updates.slice(0, most)
  }

  get unconfirmed(): number {
    return this.#updates.length
  }

  /** Calls back at the next update. @returns gives the waiting up */
  wait(then: () => void): () => void {
    this.#told.add(then)
    return () => void this.#told.delete(then)
  }

  /** Numbers begin anew at another place, as they do after a week without updates. */
  renumber(): void {
    this.#lastUpdate = 1_000
  }

  clear(): void {
    this.#people.clear()
    this.#chats.clear()
    this.#updates = []
  }

  #open(id: number, type: Chat["type"], title: string): Chat {
    const chat: Chat = { id, type, title, state: "new", migratedTo: undefined, messages: [] }
    this.#chats.set(id, chat)
    return chat
  }

  #keep(
    chat: Chat,
    { entities, text }: FormattedText,
    from: string,
    nowMillis: number,
    isBot: boolean,
    buttons: ChatMessage["buttons"] = []
  ): ChatMessage {
    const at = new Date(nowMillis).toISOString()
    const message = { messageId: ++this.#lastMessage, from, isBot, at, text, entities, buttons }
    chat.messages.push(message)
    if (chat.messages.length > shownMax) chat.messages.shift()
    return message
  }

  #tell(chat: Chat, person: Person, messageId: number, written: Written, nowMillis: number): void {
    this.#add({
      message: {
        message_id: messageId,
        from: personOf(person),
        chat: chatOf(chat),
        date: Math.floor(nowMillis / 1_000),
        ...written
      }
    })
  }

  #add(told: object): void {
    if (this.#updates.length >= limits.entries) this.#updates.shift()
    this.#updates.push({ update_id: ++this.#lastUpdate, ...told })
    for (const then of this.#told) then()
  }
}

const outside = ({ type }: Chat, state: Chat["state"]): string =>
  type === "private" || state === "blocked" ? "kicked" : "left"

export const botUser = {
  id: sandboxBot.id,
  is_bot: true,
  first_name: sandboxBot.name,
  username: sandboxBot.username
}

const personOf = ({ id, name }: Person) => ({ id, is_bot: false, first_name: name, language_code: "en" })

export const chatOf = ({ id, title, type }: Chat) =>
  type === "private" ? { id, type, first_name: title } : { id, type, title }

/** Throws where the bot may not write there. */
export const writable = (chats: TelegramChats, id: number): Chat => {
  const chat = chats.find(id)
  if (chat === undefined) throw new TelegramRefusal(400, "Bad Request: chat not found")
  if (chat.migratedTo !== undefined)
    throw new TelegramRefusal(400, "Bad Request: group chat was upgraded to a supergroup chat", {
      migrate_to_chat_id: chat.migratedTo
    })
  if (chat.state === "active") return chat
  if (chat.type !== "private")
    throw new TelegramRefusal(403, `Forbidden: bot was kicked from the ${chat.type} chat`)
  throw new TelegramRefusal(
    403,
    chat.state === "blocked"
      ? "Forbidden: bot was blocked by the user"
      : "Forbidden: bot can't initiate conversation with a user"
  )
}

export const nameIn = (fields: Fields, field: string): string | undefined =>
  fields.text(field, /^[^\p{Cc}]{1,100}$/u, "expected 1 to 100 characters of one line")
