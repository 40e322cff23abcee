import type { Fault, Faults } from "./Faults.ts"
import type { Entry, Inbox } from "./Inbox.ts"
import type { Judgement, Peer } from "./Peer.ts"
import { type SandboxAnswer, SandboxRefusal, type SandboxRequest } from "./SandboxRequest.ts"

/** How a request to a channel is answered, the same for every kind. */
export interface Received {
  /** undefined: the connection is cut */
  readonly answer: SandboxAnswer | undefined
  readonly delayMillis: number
}

interface Parts {
  readonly inbox: Inbox
  readonly faults: Faults
}

/** Notes a request to a channel in the inbox, with the fault that was ordered for it. */
export const receive = (
  { faults, inbox }: Parts,
  peer: Peer,
  id: string,
  request: SandboxRequest
): Received => {
  const fault = faults.take(peer.has(id) ? id : undefined)
  const judged = withFault(peer, peer.judge(id, request), fault)
  const { outcome } = judged
  const isTaken = outcome._tag === "Taken"
  const isCut = fault !== undefined && fault.cut !== null
  const entry: Omit<Entry, "seq"> = {
    kind: peer.kind,
    channel: judged.channel,
    receivedAt: new Date(request.nowMillis).toISOString(),
    accepted: isTaken,
    status: null,
    problem: isTaken ? null : outcome.refusal.message,
    fault: fault?.id ?? null,
    repeated: judged.channel !== null && inbox.isRepeated(judged.channel, judged.messageId, isTaken),
    state: isTaken ? outcome.state : null,
    headers: judged.headers,
    vapid: judged.vapid,
    signed: judged.signed,
    payload: judged.payload,
    bytes: request.body.length
  }
  return { answer: answered(inbox, entry, outcome, isCut), delayMillis: fault?.delayMillis ?? 0 }
}

/** The status is that of the answer, which may name the entry's number. */
const answered = (
  inbox: Inbox,
  entry: Omit<Entry, "seq">,
  outcome: Judgement["outcome"],
  isCut: boolean
): SandboxAnswer | undefined => {
  if (outcome._tag === "Refused") {
    const { answer } = outcome.refusal
    inbox.add({ ...entry, status: isCut ? null : answer.status })
    return isCut ? undefined : answer
  }
  const noted = inbox.add({ ...entry, status: isCut ? null : outcome.status })
  const answer = outcome.accept(noted)
  return isCut ? undefined : answer
}

/** A fault that answers, or cuts before, keeps a request from being accepted. */
const withFault = (peer: Peer, judged: Judgement, fault: Fault | undefined): Judgement => {
  if (fault === undefined || (fault.status === null && fault.cut !== "before")) return judged
  const refusal =
    fault.status === null
      ? new SandboxRefusal(503, "the connection was cut, as was ordered")
      : new FaultAnswer(fault, fault.status, peer)
  return { ...judged, outcome: { _tag: "Refused", refusal } }
}

class FaultAnswer extends SandboxRefusal {
  readonly #fault: Fault
  readonly #own: SandboxRefusal | undefined

  constructor(fault: Fault, status: number, peer: Peer) {
    super(status, `${status} was ordered`)
    this.#fault = fault
    this.#own = peer.refusal?.(status, fault.retryAfter)
  }

  override get answer(): SandboxAnswer {
    const { body, retryAfter } = this.#fault
    const headers = retryAfter === null ? {} : { "retry-after": retryAfter }
    if (body === null) return { ...(this.#own?.answer ?? super.answer), headers }
    return { status: this.status, headers, text: { contentType: "application/json", body } }
  }
}
