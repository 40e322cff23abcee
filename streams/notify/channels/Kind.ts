import type { Adjustments, ChannelAnswer, ChannelRequest, Notice, Verdict } from "./Channel.ts"
import type { Vapid } from "./Vapid.ts"

/** The rest that a request is made of, beside the channel and the notice. */
export interface ChannelSender {
  readonly vapid: Vapid
  readonly nowMillis: number
  readonly adjustments?: Adjustments
}

/** The link by which those behind an address confirm it. */
export interface Confirmation {
  readonly channelId: string
  readonly url: string
}

/** All that is particular to a kind of channels. */
export interface Kind<Target> {
  /** as owners read it, such as "the push service" */
  readonly service: string
  /** Statuses by which a channel is no more. */
  readonly gone: ReadonlyArray<number>
  /** Statuses of a refused signature: an operator's fault, or a token that aged, but none of the channel. */
  readonly unsigned?: ReadonlyArray<number>
  /** Consequences of answers that mean something of their own; undefined: as their status says. */
  readonly verdictOf?: (answer: ChannelAnswer, adjustments: Adjustments) => Verdict | undefined
  /** The service's word or number for a refusal, by the beginning of its answer; never text of a stranger's. */
  readonly reasonOf?: (body: string) => string | undefined
  /** The pause before the next request, in ms, that a service asks for otherwise than by `Retry-After`. */
  readonly pauseOf?: (answer: ChannelAnswer) => number | undefined
  /** The service's host, as the channel's subscriber reads it. */
  readonly hostOf: (target: Target) => string
  /** Attempts at one host, of kinds with the same word here, are counted together, and have this limit. */
  readonly gate: "push" | "webhook" | "telegram"
  /** A notice as the service takes it. It may throw where the target is not one that was read. */
  readonly request: (target: Target, notice: Notice, sender: ChannelSender) => ChannelRequest
  /** Asks those behind the address for their consent; undefined: none is needed, as it came from them. */
  readonly confirmation:
    | ((target: Target, confirmation: Confirmation, nowMillis: number) => ChannelRequest)
    | undefined
}
