import type { ChatWebhooks } from "./ChatWebhooks.ts"
import type { Faults } from "./Faults.ts"
import type { Inbox } from "./Inbox.ts"
import type { PushService } from "./PushService.ts"
import type { SandboxAnswer, SandboxRequest } from "./SandboxRequest.ts"
import type { TelegramApi } from "./telegram/TelegramApi.ts"
import type { Webhooks } from "./Webhooks.ts"

export interface Parts {
  readonly origin: () => string
  readonly nowMillis: () => number
  readonly inbox: Inbox
  readonly faults: Faults
  readonly push: PushService
  readonly webhooks: Webhooks
  readonly chats: ReadonlyArray<ChatWebhooks>
  readonly telegram: TelegramApi
}

/** undefined: the connection is cut. `gone` is of the client. */
export type Handle = (
  parts: Parts,
  request: SandboxRequest,
  gone: AbortSignal
) => SandboxAnswer | undefined | Promise<SandboxAnswer | undefined>
