import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import type { SandboxClient } from "#test/notify/sandbox/SandboxClient.ts"

export interface TelegramMessage {
  readonly messageId: number
  readonly from: string
  readonly isBot: boolean
  readonly text: string
  readonly entities: ReadonlyArray<{
    readonly type: string
    readonly offset: number
    readonly length: number
  }>
  readonly buttons: ReadonlyArray<{ readonly text: string; readonly url: string }>
}

export interface TelegramChat {
  readonly id: number
  readonly type: "private" | "group" | "supergroup"
  readonly title: string
  readonly state: "new" | "active" | "blocked" | "deleted"
  readonly migratedTo: number | null
  readonly messages: ReadonlyArray<TelegramMessage>
}

interface Started {
  readonly person: { readonly id: number; readonly name: string }
  readonly chat: TelegramChat
}

interface Press {
  readonly person?: number
  readonly name?: string
  readonly group?: number
  readonly groupTitle?: string
}

/** The made-up Telegram of a sandbox, over its HTTP interface. */
export class TelegramPeople {
  readonly sandbox: SandboxClient

  constructor(sandbox: SandboxClient) {
    this.sandbox = sandbox
  }

  /** A person follows a link of the bot and presses start; with a group they add the bot to it. */
  press(code: string, by: Press = {}): Promise<Started> {
    return this.sandbox.ask("POST", "/telegram/start", { code, ...by })
  }

  person(name = "Ada"): Promise<{ readonly id: number }> {
    return this.sandbox.ask("POST", "/telegram/people", { name })
  }

  /** The private chat of a new person who wrote to the bot already. */
  async openChat(name = "Ada"): Promise<number> {
    const { id } = await this.person(name)
    await this.write(id, "hello")
    return id
  }

  write(chat: number, text: string, person?: number): Promise<TelegramMessage> {
    return this.sandbox.ask("POST", `/telegram/chats/${chat}/messages`, {
      text,
      ...(person !== undefined && { person })
    })
  }

  chat(id: number): Promise<TelegramChat> {
    return this.sandbox.ask("GET", `/telegram/chats/${id}`)
  }

  change(id: number, state: "active" | "blocked" | "deleted"): Promise<TelegramChat> {
    return this.sandbox.ask("PATCH", `/telegram/chats/${id}`, { state })
  }

  supergroup(id: number): Promise<TelegramChat> {
    return this.sandbox.ask("POST", `/telegram/chats/${id}/supergroup`)
  }

  /** A method of the Bot API, as a program with this token asks it. */
  async bot(token: string, method: string, parameters: object = {}) {
    const response = await fetch(`${this.sandbox.origin}/bot${token}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(parameters)
    })
    const json = (await response.json()) as {
      readonly ok: boolean
      readonly result?: unknown
      readonly description?: string
      readonly parameters?: { readonly retry_after?: number; readonly migrate_to_chat_id?: number }
    }
    return { status: response.status, ...json }
  }

  /** Updates that the bot has not confirmed. */
  async unconfirmed(): Promise<number> {
    const { unconfirmed } = await this.sandbox.ask<{ readonly unconfirmed: number }>("GET", "/telegram/chats")
    return unconfirmed
  }

  /** The messages of the bot in a chat, the oldest first. */
  async fromBot(chat: number): Promise<ReadonlyArray<TelegramMessage>> {
    return (await this.chat(chat)).messages.filter(({ isBot }) => isBot)
  }
}

/** So many messages of the bot in a chat, as soon as they are there. */
export const botMessages = (people: TelegramPeople, chat: number, count: number) =>
  Effect.promise(async () => {
    const end = performance.now() + 20_000
    for (;;) {
      const found = await people.fromBot(chat)
      if (found.length >= count) return found
      if (performance.now() > end)
        throw new Error(`${found.length} of ${count} came to ${chat}: ${JSON.stringify(found)}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })

/** The bot has confirmed all updates. */
export const allConfirmed = (people: TelegramPeople) =>
  eventually(
    "the bot has confirmed all updates",
    Effect.map(
      Effect.promise(() => people.unconfirmed()),
      (count) => count === 0
    )
  )
