import type { Entry } from "./Inbox.ts"
import type { SandboxAnswer, SandboxRefusal, SandboxRequest } from "./SandboxRequest.ts"

/** A service's judgement of a request to one of its channels. */
export interface Judgement {
  readonly channel: string | null
  /** the id by which a repetition is known: a topic, a `webhook-id` */
  readonly messageId: string | undefined
  readonly headers: Entry["headers"]
  readonly vapid: Entry["vapid"]
  readonly signed: boolean | null
  readonly payload: unknown
  /** the refusal, or how it is taken */
  readonly outcome:
    | { readonly _tag: "Refused"; readonly refusal: SandboxRefusal }
    | {
        readonly _tag: "Taken"
        readonly status: number
        readonly state: Entry["state"]
        /** done once it is counted */
        readonly accept: (entry: Entry) => SandboxAnswer
      }
}

/** A service of the sandbox: a push service, a receiver of webhooks, Telegram. */
export interface Peer {
  readonly kind: Entry["kind"]
  /** never throws: a request that cannot be read is refused */
  readonly judge: (id: string, request: SandboxRequest) => Judgement
  readonly has: (id: string) => boolean
  /** a fault that was ordered, in the service's own form */
  readonly refusal?: (status: number, retryAfter: string | null) => SandboxRefusal
}

/** Characters of a header that the inbox keeps. */
const shownMax = 200

/** Those of the headers that are there, the beginning of each value as one text. */
export const headersOf = (
  { headers }: SandboxRequest,
  names: ReadonlyArray<string>
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return value === undefined ? [] : [[name, String(value).slice(0, shownMax)]]
    })
  )
