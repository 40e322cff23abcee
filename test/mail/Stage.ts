import { Effect } from "effect"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

export const live = { excludeTestServices: true } as const

/** A mail that can be sent. */
export const plain = {
  from: "shop@example.com",
  to: "ada@example.org",
  subject: "Hello",
  text: "Hello, Ada."
}

export interface ReadEmail {
  readonly id: string
  readonly message_id_header: string
  readonly recipients: ReadonlyArray<{
    readonly address: string
    readonly kind: string
    readonly status: string
    readonly attempts: number
    readonly last_reply: string | null
    readonly next_attempt_at: string | null
    readonly bounces: ReadonlyArray<{ readonly type: string; readonly detail: string }>
  }>
}

/** A person who sends and reads mail. */
export const makeStageOf = Effect.fnUntraced(function* (role: "user" | "admin") {
  const { ask, makeUser } = yield* TestServer
  const { id: userId, key } = yield* makeUser(role)
  const post = (fields: object, headers: Readonly<Record<string, string>> = {}) =>
    ask("POST", "/send", { key, json: { ...plain, ...fields }, headers })
  const read = (id: string, wait = 0) =>
    Effect.map(ask("GET", `/api/v1/emails/${id}?wait=${wait}`, { key }), ({ json }) => json as ReadEmail)
  return {
    userId,
    key,
    post,
    /** sends, and answers the id */
    sent: (fields: object = {}) => Effect.map(post(fields), (answer) => textOf(answer, "message_id")),
    /** `wait`: seconds for the first attempts at the most */
    read,
    /** once each recipient was tried, however long that takes */
    tried: (id: string) =>
      Effect.repeat(read(id, 30), {
        until: ({ recipients }) =>
          recipients.every(({ attempts, status }) => attempts > 0 || !/^(queued|sending)$/.test(status))
      }),
    get: (path: string) => ask("GET", `/api/v1/emails${path}`, { key })
  }
})

export const makeStage = makeStageOf("user")

/** The value of the line of `/metrics` that begins so. */
export const metric = (name: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", "/metrics"), ({ bytes }) => {
      const lines = Buffer.from(bytes).toString().split("\n")
      const line = lines.find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
      return line === undefined ? undefined : Number(line.split(" ").at(-1))
    })
  )
