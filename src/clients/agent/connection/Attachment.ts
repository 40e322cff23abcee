import { setTimeout as after } from "node:timers/promises"
import type { ClientFrame, Hello, ThinkingLevel } from "#schemas/agents/ClientFrame.ts"
import type { Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import type { JournalDirectory } from "../journal/JournalDirectory.ts"
import type { SessionJournal } from "../journal/SessionJournal.ts"
import type { ToolRunner } from "../tools/ToolRunner.ts"
import type { Approve } from "./Client.ts"
import type { ClientEvent, ClosedReason, LinkState } from "./ClientEvents.ts"
import { ConnectionClosed } from "./ConnectionClosed.ts"
import { Link, type Patience } from "./Link.ts"
import { misunderstood, StrangeFrames } from "./Misunderstood.ts"
import type { Read } from "./ReadFrame.ts"
import { rootOf, type ServerAddress } from "./ServerRest.ts"
import { ToolCalls } from "./ToolCalls.ts"
import { Unacknowledged, type PromptFrame } from "./Unacknowledged.ts"

/** How long to wait for calls that were told to stop. */
const stopMillis = 5_000

export interface AttachmentParts {
  readonly server: ServerAddress
  readonly client: { readonly version: string; readonly platform: string; readonly name: string }
  readonly workspace: Hello["workspace"]
  readonly budgetUsd?: number
  readonly runner: SessionRunner
  readonly journals: JournalDirectory
  readonly approve: Approve
  readonly patience?: Patience
  readonly random: () => number
  readonly tell: (event: ClientEvent) => void
}

/** Makes calls, and remembers what was allowed for one session. */
export type SessionRunner = Pick<ToolRunner, "runInTurn"> & {
  readonly approvals?: Pick<ToolRunner["approvals"], "enter">
}

/** The options that may change between one hello and the next. */
export interface SessionOptions {
  readonly model?: string
  readonly thinkingLevel?: ThinkingLevel
}

/** A session of this machine, with everything of it that outlives a connection. */
interface Held {
  readonly id: string
  readonly journal: SessionJournal
  readonly calls: ToolCalls
  readonly release: () => void
}

/** The frames that say that something of the session is stored. */
const isMilestone = (frame: ServerFrame): boolean =>
  frame.type === "prompt.done" ||
  (frame.type === "event" && (frame.kind === "message_end" || frame.kind === "tool_end"))

/** This machine's side of one session, over as many connections as it takes. */
export class Attachment {
  private readonly parts: AttachmentParts
  private readonly unacknowledged = new Unacknowledged()
  private readonly strange = new StrangeFrames()
  private wishes: SessionOptions
  private held: Held | undefined
  private link: Link
  private lastSeq = 0
  private pendingAbort: ClientFrame | undefined
  private waiting: PromiseWithResolvers<Ready> = Promise.withResolvers()
  private lastReady: Ready | undefined
  private active: string | undefined
  private isOpen = false
  private letting: Promise<void> = Promise.resolve()

  constructor(parts: AttachmentParts, wishes: SessionOptions) {
    this.parts = parts
    this.wishes = wishes
    this.link = this.makeLink()
  }

  get ready(): Ready | undefined {
    return this.lastReady
  }

  get activePrompt(): string | undefined {
    return this.active
  }

  /**
   * Takes a session of earlier, with all its frames again or those alone that this machine has not seen. Throws
   * `ConnectionClosed` where another process of this machine has it.
   */
  take(sessionId: string, withHistory: boolean): void {
    const { journal } = this.hold(sessionId)
    this.lastSeq = withHistory ? 0 : journal.lastSeq
  }

  open(): Promise<Ready> {
    this.isOpen = true
    this.link.open()
    return this.waiting.promise
  }

  /** The same session over a new connection, with other wishes. */
  reopen(changes: SessionOptions): Promise<Ready> {
    this.wishes = { ...this.wishes, ...changes }
    this.link.drop()
    this.link = this.makeLink()
    const before = this.waiting
    this.waiting = Promise.withResolvers()
    // Callers that still wait for the first hello are served by this one.
    this.waiting.promise.then(before.resolve, before.reject)
    return this.open()
  }

  say(promptFrame: PromptFrame): void {
    this.unacknowledged.add(promptFrame)
    if (promptFrame.type !== "steer") this.active ??= promptFrame.id
    this.link.send(promptFrame)
  }

  abort(frame: ClientFrame): void {
    if (this.link.send(frame)) return
    this.pendingAbort = frame
    this.held?.calls.stopAll()
  }

  /** Ends what runs here, says goodbye, and lets the session go. */
  async leave(): Promise<void> {
    await this.stopCalls()
    await this.link.leave()
    await this.letGo()
    if (this.isOpen) this.waiting.reject(new ConnectionClosed("bye", "The session was left"))
  }

  private makeLink(): Link {
    const { patience, random, server } = this.parts
    return new Link({
      server,
      random,
      ...(patience && { patience }),
      hello: () => this.hello(),
      attached: (ready) => this.attached(ready),
      read: (read) => this.read(read),
      seen: () => this.lastSeq,
      tell: (state) => this.linkChanged(state)
    })
  }

  private hello(): Hello {
    const { budgetUsd, client, journals, workspace } = this.parts
    return {
      type: "hello",
      protocol: 1,
      client: { ...client, journalId: journals.journalId },
      workspace,
      ...this.wishes,
      ...(budgetUsd === undefined ? {} : { budgetUsd }),
      ...(this.held === undefined ? {} : { resume: this.held.id, lastSeq: this.lastSeq })
    }
  }

  private attached(ready: Ready): void {
    try {
      this.held ??= this.hold(ready.sessionId)
    } catch (error) {
      return this.close("locked", `This session cannot be noted on this machine: ${rootOf(error)}`)
    }
    if (this.held.id !== ready.sessionId) {
      return this.close("refused", `The server gave session ${ready.sessionId} for ${this.held.id}`)
    }
    this.parts.runner.approvals?.enter(ready.sessionId)
    this.lastReady = ready
    this.unacknowledged.takeReady(ready)
    const unsaid = this.unacknowledged.all().find(({ type }) => type !== "steer")
    this.active = ready.activePrompt ?? unsaid?.id
    this.parts.tell({ type: "link", state: "connected", ready })
    this.waiting.resolve(ready)
    for (const promptFrame of this.unacknowledged.all()) this.link.send(promptFrame)
    if (this.pendingAbort !== undefined) this.link.send(this.pendingAbort)
    this.pendingAbort = undefined
  }

  /** Throws `ConnectionClosed`, or what the file system says. */
  private hold(sessionId: string): Held {
    const { approve, journals, runner, server, tell, workspace } = this.parts
    const lock = journals.lock(sessionId)
    if (!lock.held) {
      const problem = `Process ${lock.byPid} of this machine has session ${sessionId} open`
      throw new ConnectionClosed("locked", problem)
    }
    const journal = journals.open(sessionId, { url: server.url, root: workspace.root })
    const calls = new ToolCalls(journal, {
      runner,
      approve,
      send: (frame) => this.link.send(frame),
      tell: (state) => tell({ type: "tool", ...state }),
      isCongested: () => this.link.isCongested
    })
    this.held = { id: sessionId, journal, calls, release: lock.release }
    return this.held
  }

  /** Each numbered frame counts once, however often it comes. */
  private read(read: Read): void {
    if (read.kind === "strange" || read.kind === "broken") this.notice(read)
    if (read.kind === "broken") return
    if (read.seq !== undefined) {
      if (read.seq <= this.lastSeq) return
      this.lastSeq = read.seq
    }
    // The outcome of the prompt cannot be guessed; of an earlier one it does not matter.
    const isEnd = read.kind === "strange" && read.type === "prompt.done"
    if (isEnd && (read.seq ?? 0) > (this.lastReady?.seq ?? 0))
      return this.close("not_understood", misunderstood(read))
    if (read.kind === "strange_call") this.held?.calls.strange(read.callId)
    if (read.kind === "known") this.work(read.frame)
  }

  /** The session goes on: a newer server may say more than this client knows. */
  private notice(read: Read): void {
    const text = this.strange.notice(read)
    if (text !== undefined) this.parts.tell({ type: "notice", level: "warning", text })
  }

  private work(frame: ServerFrame): void {
    const { held } = this
    held?.calls.observe(frame)
    this.unacknowledged.take(frame)
    const isReplayed = "seq" in frame && frame.seq <= (this.lastReady?.seq ?? 0)
    const isStart = frame.type === "event" && frame.kind === "turn_start"
    if (isStart && !isReplayed) this.active = frame.promptId
    if ((frame.type === "prompt.done" || frame.type === "error") && frame.id === this.active) {
      this.active = undefined
    }
    this.parts.tell({ type: "frame", frame })
    // Requests that are replayed were made before; those that are open are made anew, with numbers of their own.
    if (frame.type === "tool.request" && !isReplayed) held?.calls.request(frame)
    if (isMilestone(frame)) held?.journal.seen(this.lastSeq)
  }

  private linkChanged(state: LinkState): void {
    this.parts.tell({ type: "link", ...state })
    if (state.state !== "closed") return
    this.waiting.reject(new ConnectionClosed(state.reason, state.problem))
    this.stopCalls().then(() => this.letGo())
  }

  private close(reason: ClosedReason, problem: string): void {
    this.link.drop()
    this.linkChanged({ state: "closed", reason, problem })
  }

  private async stopCalls(): Promise<void> {
    this.held?.calls.stopAll()
    await Promise.race([this.held?.calls.settled(), after(stopMillis, undefined, { ref: false })])
  }

  private letGo(): Promise<void> {
    const { held } = this
    this.held = undefined
    if (held !== undefined) this.letting = held.journal.close().then(() => held.release())
    return this.letting
  }
}
