import type { PicoUsd } from "#schemas/llm/Money.ts"
import { type CallRecord, nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import type { CallFault } from "./CallFault.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { chargeOf, lostOn } from "./Charge.ts"

/** What is known of a call from its beginning. */
export type CallHead = Pick<
  CallRecord,
  "id" | "userId" | "keyId" | "source" | "startedAt" | "requested" | "collection" | "kind" | "streamed"
>

/** A client that left before there was an answer. Source: nginx, which made the number common. */
const clientLeft = 499

/** Adds up a call over its stages and tries, and makes its record at the end. */
export class CallTally {
  readonly head: CallHead
  attempts = 0
  readonly stages: Array<string> = []
  /** of the answers that count, before it is known who pays */
  cost: PicoUsd = 0n
  promptTokens = 0
  completionTokens = 0
  resolved = ""
  #cachedTokens = 0
  /** what the upstream charges for models that cost callers nothing */
  #lost: PicoUsd = 0n
  #firstTokenMillis: number | null = null

  constructor(head: CallHead) {
    this.head = head
  }

  /** A model's answer counts, with what it costs. */
  add(model: CatalogueModel, usage: UpstreamUsage, images: number): void {
    this.resolved = model.id
    this.cost += chargeOf(model, usage, images)
    this.#lost += lostOn(model, usage)
    this.promptTokens += usage.promptTokens
    this.completionTokens += usage.completionTokens
    this.#cachedTokens += usage.cachedTokens
  }

  firstTokenAt(epochMillis: number): void {
    this.#firstTokenMillis = epochMillis - this.head.startedAt
  }

  get tokens(): number {
    return this.promptTokens + this.completionTokens
  }

  answered(settlement: Settlement): CallRecord {
    return this.#record(200, "", true, settlement)
  }

  /** The answer began and did not come to its end; `settlement` where it is paid all the same. */
  brokeOff(errorCode: string, settlement?: Settlement): CallRecord {
    return this.#record(200, errorCode, false, settlement)
  }

  refused({ code, status, type }: CallFault): CallRecord {
    return this.#record(status, code ?? type, false, undefined)
  }

  clientGone(): CallRecord {
    return this.#record(clientLeft, "client_gone", false, undefined)
  }

  /** Of a call that nobody pays, what earlier stages have cost is the platform's loss. */
  #settled(settlement: Settlement | undefined): Settlement {
    const { loss, ...rest } = settlement ?? { ...nothingDrawn, loss: String(this.cost) }
    return { ...rest, loss: String(BigInt(loss) + this.#lost) }
  }

  #record(
    status: number,
    errorCode: string,
    success: boolean,
    settlement: Settlement | undefined
  ): CallRecord {
    return {
      ...this.head,
      endedAt: Date.now(),
      resolved: this.resolved,
      status,
      errorCode,
      success,
      attempts: this.attempts,
      promptTokens: this.promptTokens,
      completionTokens: this.completionTokens,
      cachedTokens: this.#cachedTokens,
      firstTokenMillis: this.#firstTokenMillis,
      settlement: this.#settled(settlement)
    }
  }
}
