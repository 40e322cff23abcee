import { Effect, Schema, type Scope } from "effect"
import { discord, slack } from "./ChatServices.ts"
import { ChatWebhooks } from "./ChatWebhooks.ts"
import { Faults } from "./Faults.ts"
import { Inbox } from "./Inbox.ts"
import { PushService } from "./PushService.ts"
import * as SandboxServer from "./SandboxServer.ts"
import { TelegramApi } from "./telegram/TelegramApi.ts"
import { TelegramChats } from "./telegram/TelegramChats.ts"
import { Webhooks } from "./Webhooks.ts"

export interface ChannelsSandboxOptions {
  /** on loopback; 0 (the default) for any free one */
  readonly port?: number | undefined
  /** by which tokens and messages age; the system's where absent */
  readonly nowMillis?: (() => number) | undefined
}

export interface RunningChannelsSandbox {
  /** `http://127.0.0.1:<port>`, also of the page that shows the inbox */
  readonly origin: string
}

/** The port is taken, or none. */
export class ChannelsSandboxFailed extends Schema.TaggedError<ChannelsSandboxFailed>()(
  "ChannelsSandboxFailed",
  {
    problem: Schema.String
  }
) {
  override get message(): string {
    return this.problem
  }
}

/**
 * A stand-in for the services behind channels, on loopback: a push service with browsers of its own, receivers of
 * webhooks, chats with webhooks, and Telegram. Nothing leaves the machine, all of it is in memory, and it stops when its scope closes. Source:
 * contract/sandbox#requests, which has its HTTP interface.
 */
export const start = (
  options: ChannelsSandboxOptions = {}
): Effect.Effect<RunningChannelsSandbox, ChannelsSandboxFailed, Scope.Scope> =>
  Effect.gen(function* () {
    let origin = ""
    const originOf = (): string => origin
    const { nowMillis = Date.now } = options
    const parts = {
      origin: originOf,
      nowMillis,
      inbox: new Inbox(),
      faults: new Faults(),
      push: new PushService(originOf),
      webhooks: new Webhooks(originOf),
      chats: [new ChatWebhooks(slack, originOf), new ChatWebhooks(discord, originOf)],
      telegram: new TelegramApi(new TelegramChats(nowMillis()))
    }
    const { port: wanted = 0 } = options
    if (!(wanted >= 0 && wanted <= 65_535))
      return yield* new ChannelsSandboxFailed({ problem: `${wanted} is no port` })
    const server = SandboxServer.make(parts)
    const port = yield* Effect.acquireRelease(SandboxServer.listening(server, wanted), () =>
      SandboxServer.closed(server)
    ).pipe(
      Effect.mapError(
        (error) =>
          new ChannelsSandboxFailed({ problem: `The sandbox of channels cannot listen: ${error.message}` })
      )
    )
    origin = `http://127.0.0.1:${port}`
    return { origin }
  })
