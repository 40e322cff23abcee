import { Effect, Schema } from "effect"
import { Pool } from "undici"
import type { ChannelAnswer } from "#streams/notify/channels/Channel.ts"
import { problemOf } from "#src/infra/upstream/Upstream.ts"
import type { Limits } from "#src/Limits.ts"

/** There was no whole answer. The problem has neither the token nor the path, which has it. */
export class BotUnreachable extends Schema.TaggedError<BotUnreachable>()("BotUnreachable", {
  kind: Schema.Literals(["connect", "time", "size", "answer"]),
  problem: Schema.String
}) {
  override get message(): string {
    return `Telegram is unreachable: ${this.problem}`
  }
}

/** A method of the Bot API, with its parameters as JSON. An answer of any status is one. */
export type BotCall = (
  method: "getMe" | "getUpdates" | "sendMessage",
  parameters: object | Uint8Array,
  totalMillis: number
) => Effect.Effect<ChannelAnswer, BotUnreachable>

/** Telegram's Bot API over kept connections. It is the operator's address, so egress is not asked about it. */
export const makeBotClient = Effect.fnUntraced(function* (
  { apiUrl, token }: { readonly apiUrl: string; readonly token: string },
  limits: Limits
) {
  const root = new URL(apiUrl)
  const prefix = `${root.pathname.replace(/\/$/u, "")}/bot${token}`
  const pool = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Pool(root.origin, {
          connections: limits.telegramConnections,
          pipelining: 1,
          allowH2: false,
          connect: { timeout: limits.telegramConnectMillis },
          headersTimeout: 0,
          bodyTimeout: 0
        })
    ),
    (open) => Effect.promise(() => open.destroy())
  )
  const call: BotCall = (method, parameters, totalMillis) =>
    Effect.tryPromise({
      try: async (signal) => {
        const { body, headers, statusCode } = await pool.request({
          path: `${prefix}/${method}`,
          method: "POST",
          // By its own name the sandbox knows this server where strangers have it post something.
          headers: { "content-type": "application/json", "user-agent": "bot (signalbox)" },
          body: parameters instanceof Uint8Array ? parameters : JSON.stringify(parameters),
          signal: AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(totalMillis)))])
        })
        const chunks: Array<Uint8Array> = []
        let bytes = 0
        for await (const chunk of body) {
          bytes += chunk.length
          if (bytes > limits.telegramAnswerBytes)
            throw new BotUnreachable({ kind: "size", problem: "its answer is too long" })
          chunks.push(chunk)
        }
        const header = (name: string): string | undefined => {
          const value = headers[name]
          return typeof value === "string" ? value : value?.[0]
        }
        return { status: statusCode, header, body: Buffer.concat(chunks) }
      },
      catch: (error) => (error instanceof BotUnreachable ? error : unreachable(error))
    })
  return call
})

const unreachable = (error: unknown): BotUnreachable => {
  const problem = problemOf(error instanceof Error ? error : new Error(String(error)))
  if (error instanceof Error && error.name === "TimeoutError")
    return new BotUnreachable({ kind: "time", problem: "it gave no answer in time" })
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  const isAnswer = /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE|HPE_)/u.test(code)
  return new BotUnreachable({ kind: isAnswer ? "answer" : "connect", problem })
}
