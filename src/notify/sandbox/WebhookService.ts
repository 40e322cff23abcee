import { newId } from "#src/infra/crypto/Tokens.ts"
import { sandboxLimits as limits } from "./Limits.ts"
import type { Judgement, Peer } from "./Peer.ts"
import { type Fields, SandboxRefusal, type SandboxRequest } from "./SandboxRequest.ts"

/** An address at which a service takes messages. */
export interface Webhook {
  readonly id: string
  state: string
  /** messages that were taken */
  accepted: number
}

/** A service of webhooks: each is made, looked at, changed and taken away by requests. */
export abstract class WebhookService<W extends Webhook> implements Peer {
  abstract readonly kind: Peer["kind"]
  readonly #webhooks = new Map<string, W>()
  readonly #root: () => string

  /** @param root of addresses, to which an id is added */
  constructor(root: () => string) {
    this.#root = root
  }

  /** never throws */
  abstract judge(id: string, request: SandboxRequest): Judgement
  /** A new one, with the fields of its service. */
  protected abstract begin(webhook: Webhook, fields: Fields): W
  protected abstract apply(webhook: W, fields: Fields): void
  /** The fields of its service, as they are told. */
  protected abstract told(webhook: W): object

  protected find(id: string): W | undefined {
    return this.#webhooks.get(id)
  }

  has(id: string): boolean {
    return this.#webhooks.has(id)
  }

  make(fields: Fields): unknown {
    if (this.#webhooks.size >= limits.channels)
      throw new SandboxRefusal(429, `at most ${limits.channels} webhooks of this kind`)
    const webhook = this.begin({ id: newId("whk"), state: "active", accepted: 0 }, fields)
    this.#webhooks.set(webhook.id, webhook)
    return this.#shown(webhook)
  }

  list(after: number, limit: number): ReadonlyArray<unknown> {
    return [...this.#webhooks.values()].slice(after, after + limit).map((one) => this.#shown(one))
  }

  get size(): number {
    return this.#webhooks.size
  }

  show(id: string): unknown {
    return this.#shown(this.#known(id))
  }

  change(id: string, fields: Fields): unknown {
    const webhook = this.#known(id)
    this.apply(webhook, fields)
    return this.#shown(webhook)
  }

  remove(id: string): void {
    this.#webhooks.delete(this.#known(id).id)
  }

  clear(): void {
    this.#webhooks.clear()
  }

  #known(id: string): W {
    const webhook = this.#webhooks.get(id)
    if (webhook === undefined) throw new SandboxRefusal(404, "there is no such webhook")
    return webhook
  }

  #shown(webhook: W): unknown {
    const { accepted, id, state } = webhook
    return { id, url: `${this.#root()}/${id}`, ...this.told(webhook), state, accepted }
  }
}
