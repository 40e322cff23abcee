import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { ClientFrame, Hello } from "#schemas/agents/ClientFrame.ts"
import type { ErrorFrame, Ready, ServerBye, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import type { LinkState } from "./ClientEvents.ts"
import { isNeeded, misunderstood } from "./Misunderstood.ts"
import { readFrame, type Read } from "./ReadFrame.ts"
import type { ServerAddress } from "./ServerRest.ts"
import { Socket } from "./Socket.ts"
import { decideRetry, type SocketEnd } from "./RetryDecision.ts"

const firstMillis = 250
const capMillis = 10_000
/** The longest pause accepted from a server. */
const askedMillisMax = 3_600_000

/**
 * The pause before attempt `failures` + 1: random, up to twice as long as the one before, so that clients which lost
 * one server do not come back in step (full jitter), and never less than the server asked for.
 */
export const backoffMillis = (failures: number, askedMillis: number, random: () => number): number => {
  const ceiling = Math.min(capMillis, firstMillis * 2 ** Math.min(failures, 16))
  return Math.max(Math.min(askedMillis, askedMillisMax), Math.round(random() * ceiling))
}

/** A connection that held so long begins its waits anew. */
const steadyMillis = 5_000
/** How long a hello waits for its answer; twice as long at each further attempt: a slow server may be under load. */
const helloMillis = 5_000
const helloMillisMax = 40_000
/** The longest duration of a goodbye. */
const farewellMillis = 2_000

export interface Patience {
  /** without a connection for so long before the first, and it is given up */
  readonly firstMillis: number
  /** … and after it */
  readonly lostMillis: number
}

interface LinkParts {
  readonly server: ServerAddress
  /** made anew for each attempt: it says how far the session was seen */
  readonly hello: () => Hello
  /** absent: it is never given up */
  readonly patience?: Patience
  readonly random: () => number
  readonly attached: (ready: Ready) => void
  /** everything but ready and bye, in the order in which it came */
  readonly read: (read: Read) => void
  /** the number of the last frame that was worked off */
  readonly seen: () => number
  readonly tell: (state: LinkState) => void
}

/** Keeps one session attached: connects, says hello, answers pings, and connects again until that is of no use. */
export class Link {
  private readonly parts: LinkParts
  private socket: Socket | undefined
  private isAttached = false
  private wasAttached = false
  private isClosed = false
  private failures = 0
  private attachedAtMillis = 0
  private lostAtMillis = performance.now()
  private bye: ServerBye | undefined
  private error: ErrorFrame | undefined
  private silence: NodeJS.Timeout | undefined
  private unanswered: NodeJS.Timeout | undefined
  /** came instead of `ready` */
  private strange: Read | undefined
  private retry: NodeJS.Timeout | undefined
  private farewell: (() => void) | undefined

  constructor(parts: LinkParts) {
    this.parts = parts
  }

  open(): void {
    this.bye = undefined
    this.error = undefined
    this.strange = undefined
    this.isAttached = false
    this.parts.tell({ state: "connecting", attempt: this.failures + 1 })
    this.socket = new Socket(this.parts.server, {
      opened: () => {
        this.alive()
        this.socket?.send(JSON.stringify(this.parts.hello()))
        this.unanswered = setTimeout(() => this.notAnswered(), this.helloMillis)
      },
      text: (text) => this.take(text),
      ended: (end) => this.lost(end)
    })
  }

  /** false where no session is attached: then nothing was sent. */
  send(frame: ClientFrame): boolean {
    return this.isAttached && this.socket?.send(JSON.stringify(frame)) === true
  }

  get isCongested(): boolean {
    return !this.isAttached || this.socket?.isCongested === true
  }

  /** Closes without a goodbye: the session stays resumable at once. No further events follow. */
  drop(): void {
    this.isClosed = true
    this.isAttached = false
    clearTimeout(this.silence)
    clearTimeout(this.unanswered)
    clearTimeout(this.retry)
    this.socket?.drop()
    this.farewell?.()
  }

  /** Says goodbye, and waits a moment for the server's. */
  async leave(): Promise<void> {
    if (this.send({ type: "bye" })) {
      await new Promise<void>((resolve) => {
        this.farewell = resolve
        const timer = setTimeout(resolve, farewellMillis)
        timer.unref()
      })
    }
    this.drop()
  }

  /** Any frame is a sign of life; a server says something every 25 seconds. */
  private alive(): void {
    clearTimeout(this.silence)
    this.silence = setTimeout(
      () => this.socket?.giveUp("The server was silent for too long"),
      agentLimits.deadMillis
    )
  }

  /** No longer than a hello may take, and no longer than the user waits for a connection. */
  private get helloMillis(): number {
    const { patience } = this.parts
    const millis = Math.min(helloMillisMax, helloMillis * 2 ** Math.min(this.failures, 8))
    const limit = this.wasAttached ? patience?.lostMillis : patience?.firstMillis
    if (limit === undefined) return millis
    return Math.max(0, Math.min(millis, limit - (performance.now() - this.lostAtMillis)))
  }

  private notAnswered(): void {
    if (this.strange !== undefined) return this.misunderstand(this.strange)
    this.socket?.giveUp("The server took the connection, and did not answer the client's hello")
  }

  /** Trying again would come to the same. */
  private misunderstand(read: Read): void {
    this.drop()
    this.close("not_understood", misunderstood(read))
  }

  private take(text: string): void {
    this.alive()
    const read = readFrame(text)
    if (read.kind === "known") return this.takeKnown(read.frame, read)
    if (isNeeded(read)) return this.misunderstand(read)
    if (this.isAttached) this.parts.read(read)
    else this.strange ??= read
  }

  private takeKnown(frame: ServerFrame, read: Read): void {
    if (frame.type === "ready") {
      clearTimeout(this.unanswered)
      this.isAttached = true
      this.wasAttached = true
      this.attachedAtMillis = performance.now()
      this.parts.attached(frame)
    } else if (frame.type === "ping") this.send({ type: "pong", ts: frame.ts, ack: this.parts.seen() })
    else if (frame.type === "bye") this.bye = frame
    else {
      if (frame.type === "error" && frame.fatal) this.error = frame
      this.parts.read(read)
    }
  }

  private lost(end: SocketEnd): void {
    clearTimeout(this.silence)
    clearTimeout(this.unanswered)
    if (this.isClosed) return
    if (this.farewell !== undefined) return this.farewell()
    const now = performance.now()
    if (this.isAttached) this.lostAtMillis = now
    const wasSteady = this.isAttached && now - this.attachedAtMillis >= steadyMillis
    if (wasSteady) this.failures = 0
    this.isAttached = false
    const said = { ...(this.bye && { bye: this.bye }), ...(this.error && { error: this.error }) }
    const decision = decideRetry(end.kind === "closed" ? { ...end, ...said } : end, this.wasAttached)
    if (!decision.retry) return this.close(decision.reason, decision.problem)
    const isAtOnce = decision.atOnce && this.failures === 0
    const waitMillis = isAtOnce
      ? decision.askedMillis
      : backoffMillis(this.failures, decision.askedMillis, this.parts.random)
    this.failures += 1
    const { patience } = this.parts
    const limit = this.wasAttached ? patience?.lostMillis : patience?.firstMillis
    if (limit !== undefined && now + waitMillis - this.lostAtMillis > limit) {
      return this.close("unreachable", decision.problem)
    }
    this.parts.tell({ state: "waiting", retryInMillis: waitMillis, problem: decision.problem })
    this.retry = setTimeout(() => this.open(), waitMillis)
  }

  private close(reason: Extract<LinkState, { state: "closed" }>["reason"], problem: string): void {
    this.isClosed = true
    this.parts.tell({ state: "closed", reason, problem })
  }
}
