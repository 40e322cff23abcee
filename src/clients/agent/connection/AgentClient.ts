import { randomUUID } from "node:crypto"
import packageJson from "../../../../package.json" with { type: "json" }
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { Hello, Steer } from "#schemas/agents/ClientFrame.ts"
import type { Ready } from "#schemas/agents/ServerFrame.ts"
import type { JournalDirectory } from "../journal/JournalDirectory.ts"
import { Attachment, type AttachmentParts, type SessionRunner, type SessionOptions } from "./Attachment.ts"
import type { Approve, Client } from "./Client.ts"
import type { ClientEvent, ClientListener, ClosedReason } from "./ClientEvents.ts"
import { ConnectionClosed, PromptTooLong } from "./ConnectionClosed.ts"
import type { Patience } from "./Link.ts"
import { fetchSessions, uploadFile, type AgentSession, type ServerAddress } from "./ServerRest.ts"

export interface AgentClientOptions extends SessionOptions {
  readonly server: ServerAddress
  readonly workspace: Hello["workspace"]
  /** the session to go on with; absent: a new one */
  readonly resume?: string
  /** whether a resumed session is replayed from its beginning, for display */
  readonly withHistory: boolean
  /** the highest cost of each session */
  readonly budgetUsd?: number
  readonly runner: SessionRunner
  readonly journals: JournalDirectory
  readonly approve: Approve
  /** absent: a lost connection is never given up */
  readonly patience?: Patience
  /** in [0, 1) */
  readonly random?: () => number
}

const sessionsShown = 100
/** Refusals of the request, not of this client: its earlier session stays available. */
const refusals: ReadonlySet<ClosedReason> = new Set(["refused", "no_credits", "no_gateway", "ended"])

/** The agent client without its display: one session at a time, across reconnects. */
export class AgentClient implements Client {
  private readonly options: AgentClientOptions
  private readonly listeners = new Set<ClientListener>()
  private approve: Approve
  private wishes: SessionOptions
  private attachment: Attachment
  /** something is tried that may fail, and its end is not the client's */
  private isTrying = false

  constructor(options: AgentClientOptions) {
    const { model, thinkingLevel } = options
    this.options = options
    this.approve = options.approve
    this.wishes = {
      ...(model === undefined ? {} : { model }),
      ...(thinkingLevel === undefined ? {} : { thinkingLevel })
    }
    this.attachment = this.attach()
  }

  readonly events = {
    subscribe: (listener: ClientListener): (() => void) => {
      this.listeners.add(listener)
      return () => this.listeners.delete(listener)
    }
  }

  get ready(): Ready | undefined {
    return this.attachment.ready
  }

  get activePrompt(): string | undefined {
    return this.attachment.activePrompt
  }

  answerApprovals(approve: Approve): void {
    this.approve = approve
  }

  async start(): Promise<Ready> {
    const { resume, withHistory } = this.options
    try {
      if (resume !== undefined) this.attachment.take(resume, withHistory)
    } catch (error) {
      if (error instanceof ConnectionClosed) {
        this.tell({ type: "link", state: "closed", reason: error.reason, problem: error.message })
      }
      throw error
    }
    return this.attachment.open()
  }

  prompt(text: string, images: ReadonlyArray<string> = []): string {
    const id = newId()
    this.attachment.say({ type: "prompt", id, text: fitting(text), ...(images.length > 0 && { images }) })
    return id
  }

  steer(text: string, mode: NonNullable<Steer["mode"]>): string {
    const id = newId()
    this.attachment.say({ type: "steer", id, text: fitting(text), mode })
    return id
  }

  abort({ clearQueue = false }: { readonly clearQueue?: boolean } = {}): void {
    const id = this.activePrompt
    this.attachment.abort({ type: "abort", clearQueue, ...(id === undefined ? {} : { id }) })
  }

  compact(instructions?: string): string {
    const id = newId()
    this.attachment.say({ type: "compact", id, ...(instructions && { instructions: fitting(instructions) }) })
    return id
  }

  async reopen(changes: SessionOptions): Promise<Ready> {
    const before = this.wishes
    this.wishes = { ...before, ...changes }
    try {
      return await this.trying(before, () => this.attachment.reopen(changes))
    } catch (error) {
      this.wishes = before
      throw error
    }
  }

  async newSession(): Promise<Ready> {
    await this.attachment.leave()
    this.attachment = this.attach()
    return this.attachment.open()
  }

  async resume(sessionId: string): Promise<Ready> {
    const before = this.ready?.sessionId
    if (sessionId === before) {
      await this.attachment.leave()
      this.attachment = new Attachment(this.attachmentParts(), {})
      this.attachment.take(sessionId, this.options.withHistory)
      return this.attachment.open()
    }
    // The session keeps the model that it had.
    const next = new Attachment(this.attachmentParts(), {})
    next.take(sessionId, this.options.withHistory)
    await this.attachment.leave()
    return this.trying({}, () => {
      this.attachment = next
      return next.open()
    })
  }

  /** A failure is no end of the client: it goes on with the session that it had. */
  private async trying(wishes: SessionOptions, attempt: () => Promise<Ready>): Promise<Ready> {
    const before = this.ready?.sessionId
    this.isTrying = before !== undefined
    try {
      return await attempt()
    } catch (error) {
      await this.attachment.leave()
      this.isTrying = false
      if (before === undefined || !(error instanceof ConnectionClosed)) throw error
      if (!refusals.has(error.reason)) {
        this.tell({ type: "link", state: "closed", reason: error.reason, problem: error.message })
        throw error
      }
      this.attachment = new Attachment(this.attachmentParts(), wishes)
      this.attachment.take(before, this.options.withHistory)
      await this.attachment.open()
      throw error
    } finally {
      this.isTrying = false
    }
  }

  async bye(): Promise<void> {
    await this.attachment.leave()
    this.tell({ type: "link", state: "closed", reason: "bye", problem: "The session was left" })
  }

  sessions(): Promise<ReadonlyArray<AgentSession>> {
    return fetchSessions(this.options.server, sessionsShown)
  }

  upload(image: {
    readonly name: string
    readonly type: string
    readonly bytes: Uint8Array
  }): Promise<string> {
    return uploadFile(this.options.server, image)
  }

  private attach(): Attachment {
    return new Attachment(this.attachmentParts(), this.wishes)
  }

  private attachmentParts(): AttachmentParts {
    const { budgetUsd, journals, patience, random = Math.random, runner, server, workspace } = this.options
    return {
      server,
      workspace,
      runner,
      journals,
      random,
      client: {
        name: "signalbox-agent",
        version: packageJson.version,
        platform: `${process.platform}-${process.arch}`
      },
      approve: (ask, signal) => this.approve(ask, signal),
      tell: (event) => this.tell(event),
      ...(budgetUsd === undefined ? {} : { budgetUsd }),
      ...(patience && { patience })
    }
  }

  private tell(event: ClientEvent): void {
    if (this.isTrying && event.type === "link" && event.state === "closed") return
    for (const listener of this.listeners) listener(event)
  }
}

const newId = (): string => `p_${randomUUID()}`

/** The size of a frame beside its text. */
const frameRestBytes = 4_096

const fitting = (text: string): string => {
  const bytes = Buffer.byteLength(text)
  if (bytes > agentLimits.promptBytes) {
    throw new PromptTooLong(`${bytes} bytes are too long: ${agentLimits.promptBytes} are allowed at once`)
  }
  // Control characters take six bytes each in JSON: a frame that is too large would close every socket it is sent over.
  if (Buffer.byteLength(JSON.stringify(text)) > agentLimits.frameBytes - frameRestBytes) {
    throw new PromptTooLong("There are too many control characters in it: this is no text")
  }
  return text
}
