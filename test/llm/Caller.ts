import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { chat, type ChatAnswer, type ChatOptions } from "./ChatClient.ts"

/** A user with credits and a key of theirs. */
export interface Caller {
  readonly userId: string
  readonly key: string
  /** a completion with one user message, read to its end */
  readonly say: (model: string, text: string, more?: object, options?: ChatOptions) => Promise<ChatAnswer>
  readonly credits: () => Promise<Credits>
  /** a collection of these models; returns the name to pass as `model` */
  readonly collect: (models: ReadonlyArray<string>, autoRoute?: boolean) => Promise<string>
  /** another key of theirs */
  readonly makeKey: (fields: object) => Promise<string>
}

export interface Credits {
  readonly balance_usd: number
  readonly lifetime_topped_up_usd: number
  readonly lifetime_spent_usd: number
}

let made = 0

export const makeCaller = async (server: Reachable, usd: number): Promise<Caller> => {
  const email = `caller-${process.pid}-${++made}@example.org`
  const user = await ask(server, "POST", "/api/v1/admin/users", { json: { email, name: "Caller" } })
  const userId = textAt(user, "id")
  const makeKey = async (fields: object): Promise<string> =>
    textAt(
      await ask(server, "POST", "/api/v1/keys", { json: { name: "calls", user_id: userId, ...fields } }),
      "key"
    )
  const key = await makeKey({ kind: "account", rate_limit_per_minute: 1_000_000 })
  if (usd > 0) {
    const topUp = { user_id: userId, amount_usd: usd }
    const { body, status } = await ask(server, "POST", "/api/v1/credits/topups", { json: topUp })
    if (status >= 300) throw new Error(`no top-up: ${status} ${JSON.stringify(body)}`)
  }
  return {
    userId,
    key,
    makeKey,
    say: (model, text, more = {}, options = {}) =>
      chat(server, key, { model, messages: [{ role: "user", content: text }], ...more }, options),
    credits: async () => (await ask(server, "GET", "/api/v1/credits", { key })).body as Credits,
    collect: async (models, autoRoute = true) => {
      const fields = { name: `Collection ${++made}`, auto_route: autoRoute, models }
      return textAt(await ask(server, "POST", "/api/v1/collections", { key, json: fields }), "model")
    }
  }
}
