import type { AgentErrorCode } from "#schemas/agents/ServerFrame.ts"
import { backoffMillis } from "#src/clients/agent/connection/Link.ts"
import { isWhole, nowMicros, type Script, stampsIn } from "./Script.ts"
import type { Print } from "./SocketLoad.ts"
import { SocketConnection, type SocketListener, type SocketTarget } from "./SocketConnection.ts"

/** The counters shared by the sessions of a process. */
export interface LoadCounts {
  attached: number
  resumed: number
  speaking: number
  holding: number
  done: number
  whole: number
  pieces: number
  gaps: number
  slow: number
  retries: number
  failures: number
}

export interface LoadHome {
  readonly counts: LoadCounts
  /** from when a piece left until it was here, milliseconds */
  readonly delays: Array<number>
  readonly fail: (what: string) => void
  /** the session wants a socket; `inMillis` from now at the earliest */
  readonly connect: (session: LoadSession, inMillis: number) => void
  /** an attempt has come to its end */
  readonly settled: () => void
}

/** The frames of the server as far as the load looks at them (schemas/agents/ServerFrame). */
interface Frame {
  readonly type: string
  readonly kind?: string
  readonly seq?: number
  readonly sessionId?: string
  readonly resumed?: boolean
  readonly delta?: string
  readonly content?: ReadonlyArray<{ readonly type: string; readonly text?: string }>
  readonly callId?: string
  readonly status?: string
  readonly error?: { readonly message: string }
  readonly code?: AgentErrorCode
  readonly message?: string
  readonly retryAfterMs?: number
  readonly ts?: number
}

/** `closeCodes.slow` of ServerFrame, which would bring all of effect into every process of the load. */
const slow = 4013

const printed = "x".repeat(16 * 1024)

/** One session of the load: greets, resumes when its socket is gone, holds its tool calls until told to answer. */
export class LoadSession implements SocketListener {
  isMeasured = false
  private readonly home: LoadHome
  private readonly target: SocketTarget
  private readonly name: string
  private connection: SocketConnection | undefined
  private id: string | undefined
  private isAttached = false
  private isSettled = true
  private lastSeq = 0
  private script: Script | undefined
  private prompts = 0
  private hasSpoken = false
  private said = ""
  private held = new Set<string>()
  private answersCalls = false
  private failures = 0
  private retryAfterMillis = 0

  constructor(home: LoadHome, target: SocketTarget, name: string) {
    this.home = home
    this.target = target
    this.name = name
  }

  connect(): void {
    this.isSettled = false
    this.connection = new SocketConnection(this.target, this)
  }

  prompt(script: Script): void {
    this.script = script
    this.hasSpoken = false
    this.said = ""
    this.held.clear()
    this.answersCalls = false
    this.say({ type: "prompt", id: `prompt-${++this.prompts}`, text: JSON.stringify(script) })
  }

  answerCalls(): void {
    this.answersCalls = true
    for (const callId of this.held) this.answer(callId)
  }

  print({ framesPerCall, overMillis, reads }: Print): void {
    if (!reads) this.connection?.pause()
    let index = 0
    const timer = setInterval(() => {
      for (const callId of this.held)
        this.say({ type: "tool.stream", callId, index, stream: "stdout", data: printed })
      if (++index < framesPerCall) return
      clearInterval(timer)
      this.answerCalls()
    }, overMillis / framesPerCall)
  }

  read(): void {
    this.connection?.resume()
  }

  opened(): void {
    this.say({
      type: "hello",
      protocol: 1,
      client: { version: "0.0.0", platform: "bench", journalId: this.name },
      workspace: { root: `/srv/${this.name}`, name: this.name },
      model: "bench/agent",
      ...(this.id === undefined ? {} : { resume: this.id, lastSeq: this.lastSeq })
    })
  }

  refused(status: number, head: string): void {
    this.retryAfterMillis = Number(/retry-after: (\d+)/i.exec(head)?.[1] ?? 0) * 1000
    if (status !== 429 && status !== 503) this.home.fail(head)
  }

  closed(code: number): void {
    const { counts } = this.home
    if (this.isAttached) counts.attached--
    else counts.retries++
    if (code === slow) counts.slow++
    this.isAttached = false
    this.connection = undefined
    this.settle()
    // As the client does it: nearly a million attempts would keep a machine from starting its server.
    this.home.connect(this, backoffMillis(this.failures++, this.retryAfterMillis, Math.random))
    this.retryAfterMillis = 0
  }

  heard(text: string): void {
    const frame: Frame = JSON.parse(text)
    if (frame.seq !== undefined && frame.type !== "ready") this.count(frame.seq)
    if (frame.type === "event") this.event(frame)
    else if (frame.type === "ready") this.greeted(frame)
    else if (frame.type === "ping") this.say({ type: "pong", ts: frame.ts, ack: this.lastSeq })
    else if (frame.type === "tool.request") this.hold(frame.callId ?? "")
    else if (frame.type === "prompt.done") this.finish(frame)
    else if (frame.type === "error" || frame.type === "bye") this.warned(frame, text)
  }

  private greeted({ resumed, seq = 0, sessionId }: Frame): void {
    const { counts } = this.home
    if (this.id !== undefined && resumed !== true) this.home.fail(`${this.name} was not resumed`)
    if (this.id === undefined) this.lastSeq = seq
    this.id = sessionId
    this.isAttached = true
    this.failures = 0
    counts.attached++
    if (resumed === true) counts.resumed++
    this.settle()
  }

  private count(seq: number): void {
    if (seq <= this.lastSeq) this.home.fail(`${this.name} got frame ${seq} after frame ${this.lastSeq}`)
    this.lastSeq = seq
  }

  private event({ content, delta, kind }: Frame): void {
    const { counts } = this.home
    if (kind === "text_delta") {
      const now = nowMicros()
      stampsIn(delta ?? "", (leftAt) => {
        counts.pieces++
        if (this.isMeasured) this.home.delays.push((now - leftAt) / 1000)
      })
      if (!this.hasSpoken) counts.speaking++
      this.hasSpoken = true
    } else if (kind === "message_end") {
      this.said = (content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("")
    } else if (kind === "replay_gap") counts.gaps++
  }

  private hold(callId: string): void {
    const isNew = !this.held.has(callId)
    const calls = this.script?.calls ?? 0
    this.held.add(callId)
    if (this.held.size > calls) this.home.fail(`${this.name} was asked for another call`)
    if (isNew && this.held.size === calls) this.home.counts.holding++
    if (this.answersCalls) this.answer(callId)
  }

  private answer(callId: string): void {
    const result =
      this.script?.tool === "bash"
        ? { exitCode: 0, output: "done", truncated: false }
        : { content: "notes", totalLines: 1, truncated: false }
    this.say({ type: "tool.result", callId, ok: true, result, durationMs: 1 })
  }

  private finish({ error, status }: Frame): void {
    const { counts } = this.home
    counts.done++
    if (status !== "completed") this.home.fail(`${this.name}: ${status}: ${error?.message}`)
    else if (!isWhole(this.said, this.script?.pieces ?? 0))
      this.home.fail(`${this.name}: not the text of the script: ${this.said.slice(0, 200)}`)
    else counts.whole++
  }

  private warned({ code, retryAfterMs = 0, type }: Frame, text: string): void {
    this.retryAfterMillis = retryAfterMs
    if (type === "error" && code !== "overloaded" && code !== "rate_limited") this.home.fail(text)
  }

  private say(frame: object): void {
    this.connection?.send(JSON.stringify(frame))
  }

  private settle(): void {
    if (this.isSettled) return
    this.isSettled = true
    this.home.settled()
  }
}
