import { Effect, Exit, Scope } from "effect"
import * as Sandbox from "#src/sandbox/Sandbox.ts"

export interface Said {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** One model's entry in `GET /account`. */
export interface Served {
  readonly model: string
  readonly requests: number
  readonly completed: number
  readonly aborted: number
  readonly failed: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  /** USD, decimal text */
  readonly cost: string
  /** how many calls cost what */
  readonly costs: Readonly<Record<string, number>>
}

/** A sandbox upstream of a test's own. */
export interface SandboxClient {
  readonly url: string
  readonly post: (path: string, json: object, signal?: AbortSignal) => Promise<Response>
  /** a whole answer to a chat */
  readonly chat: (model: string, text: string, more?: object) => Promise<Said>
  /** its totals of a model; zeros if it was never asked */
  readonly served: (model: string) => Promise<Served>
  readonly close: () => Promise<void>
}

const none = { requests: 0, completed: 0, aborted: 0, failed: 0, prompt_tokens: 0, completion_tokens: 0 }

export const startSandbox = async (options: Sandbox.SandboxOptions = {}): Promise<SandboxClient> => {
  const scope = Scope.makeUnsafe()
  const { url } = await Effect.runPromise(Scope.provide(Sandbox.start({ wordMillis: 0, ...options }), scope))
  const post = (path: string, json: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(json), signal: signal ?? null })
  return {
    url,
    post,
    chat: async (model, text, more = {}) => {
      const messages = [{ role: "user", content: text }]
      const response = await post("/chat/completions", { model, messages, ...more })
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    served: async (model) => {
      const response = await fetch(`${url}/account`)
      const { models } = (await response.json()) as { readonly models: ReadonlyArray<Served> }
      return models.find((_) => _.model === model) ?? { model, ...none, cost: "0", costs: {} }
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
