import { randomBytes } from "node:crypto"
import type { ChannelRequest, Notice } from "#streams/notify/channels/Channel.ts"
import { pushRequest } from "#streams/notify/channels/PushRequest.ts"
import { Vapid } from "#streams/notify/channels/Vapid.ts"
import { webhookRequest } from "#streams/notify/channels/Webhook.ts"
import { notice } from "#test/notify/channels/Notices.ts"
import type { SandboxSubscription, SandboxWebhook } from "./SandboxClient.ts"

export interface Told {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Changes of a request that would be accepted; a header that is undefined is left out. */
export interface Changes {
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: Uint8Array
}

/** A server of notifications as the sandbox sees it. */
export class Sender {
  readonly vapid = new Vapid({ secret: randomBytes(32), subject: "mailto:admin@example.com" })

  async post({ body, headers, url }: ChannelRequest, changes: Changes = {}): Promise<Told> {
    const all = Object.entries({ ...headers, ...changes.headers })
    const sent = all.filter((entry): entry is [string, string] => entry[1] !== undefined)
    const response = await fetch(url, {
      method: "POST",
      headers: sent,
      body: Uint8Array.from(changes.body ?? body)
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  pushOf({ endpoint, keys }: SandboxSubscription, fields: Partial<Notice> = {}): ChannelRequest {
    const nowMillis = Date.now()
    const times = { createdAtMillis: nowMillis, expiresAtMillis: nowMillis + 72 * 3_600_000 }
    return pushRequest(
      { endpoint, ...keys },
      { ...notice, ...times, ...fields },
      { vapid: this.vapid, nowMillis }
    )
  }

  push(
    subscription: SandboxSubscription,
    fields: Partial<Notice> = {},
    changes: Changes = {}
  ): Promise<Told> {
    return this.post(this.pushOf(subscription, fields), changes)
  }

  webhook(
    { secret, url }: SandboxWebhook,
    fields: Partial<Notice> = {},
    { nowMillis = Date.now(), ...changes }: Changes & { readonly nowMillis?: number } = {}
  ): Promise<Told> {
    const target = { url, secret: secret ?? `whsec_${randomBytes(32).toString("base64")}` }
    return this.post(webhookRequest(target, { ...notice, ...fields }, { nowMillis }), changes)
  }
}
