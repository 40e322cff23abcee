import { ChatRefusal, type ChatService } from "./ChatServices.ts"
import { headersOf, type Judgement } from "./Peer.ts"
import { type Fields, jsonOf, SandboxRefusal, type SandboxRequest } from "./SandboxRequest.ts"
import { type Webhook, WebhookService } from "./WebhookService.ts"

interface ChatWebhook extends Webhook {
  windowEnd: number
  inWindow: number
}

/** Webhooks of one chat, such as Slack: each is a channel there. */
export class ChatWebhooks extends WebhookService<ChatWebhook> {
  readonly kind: ChatService["kind"]
  readonly #service: ChatService

  constructor(service: ChatService, origin: () => string) {
    super(() => `${origin()}/${service.kind}`)
    this.kind = service.kind
    this.#service = service
  }

  protected begin(webhook: Webhook): ChatWebhook {
    return { ...webhook, windowEnd: 0, inWindow: 0 }
  }

  protected apply(webhook: ChatWebhook, fields: Fields): void {
    const ends = Object.keys(this.#service.ends).filter((state) => state !== "unknown")
    webhook.state = fields.oneOf("state", ["active", ...ends]) ?? webhook.state
  }

  protected told(): object {
    return {}
  }

  judge(id: string, request: SandboxRequest): Judgement {
    const webhook = this.find(id)
    const payload = jsonOf(request.body)
    const base = {
      channel: webhook?.id ?? null,
      messageId: undefined,
      headers: headersOf(request, ["content-type"]),
      vapid: null,
      signed: null,
      payload: payload ?? null
    }
    try {
      const answer = this.#answer(webhook, request, payload)
      const accept = () => {
        if (webhook !== undefined) webhook.accepted++
        return answer
      }
      return { ...base, outcome: { _tag: "Taken", status: answer.status, state: null, accept } }
    } catch (error) {
      if (!(error instanceof ChatRefusal)) throw error
      return { ...base, outcome: { _tag: "Refused", refusal: error } }
    }
  }

  #answer(webhook: ChatWebhook | undefined, { nowMillis, url }: SandboxRequest, json: unknown) {
    const { ends, judge, window } = this.#service
    const end = ends[webhook?.state ?? "unknown"]
    if (webhook === undefined || end !== undefined)
      throw end ?? new SandboxRefusal(404, "there is no such webhook")
    if (nowMillis >= webhook.windowEnd) {
      webhook.windowEnd = nowMillis + window.millis
      webhook.inWindow = 0
    }
    const answer = judge({ json, url, taken: webhook.inWindow, leftMillis: webhook.windowEnd - nowMillis })
    webhook.inWindow++
    return answer
  }
}
