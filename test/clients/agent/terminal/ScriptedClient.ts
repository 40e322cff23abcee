import { randomUUID } from "node:crypto"
import type { Steer, ThinkingLevel } from "#schemas/agents/ClientFrame.ts"
import type { EventKind, EventOf, Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import type { Approval, ApprovalAsk } from "#src/clients/agent/boundary/Approval.ts"
import type { Approve, Client } from "#src/clients/agent/connection/Client.ts"
import type { ClientEvent, ClientListener, ToolState } from "#src/clients/agent/connection/ClientEvents.ts"
import type { AgentSession } from "#src/clients/agent/connection/ServerRest.ts"

export const readyFrame: Ready = {
  type: "ready",
  sessionId: "ses_0000000000000000000001",
  resumed: false,
  seq: 0,
  model: { id: "sandbox/coder", name: "Scripted coder", context_length: 128_000 },
  thinkingLevel: "medium",
  tools: ["read", "write", "edit", "ls", "find", "grep", "bash"],
  billing: { mode: "credits", plan: null, covers_direct_api: false },
  limits: {
    frameBytes: 1_048_576,
    promptBytes: 262_144,
    streamChunkBytes: 16_384,
    streamBytes: 1_048_576,
    queue: 16,
    pingMillis: 25_000,
    deadMillis: 60_000
  }
}

export type AnyEvent = { [K in EventKind]: EventOf<K> }[EventKind]

/** A client whose server is the test. Notes what it was asked for. */
export class ScriptedClient implements Client {
  ready: Ready | undefined
  activePrompt: string | undefined
  readonly done: Array<ReadonlyArray<unknown>> = []
  known: ReadonlyArray<AgentSession> = []
  #listeners: ReadonlyArray<ClientListener> = []
  #approve: Approve = () => Promise.resolve("no")
  #seq = 0
  /** of the prompt that events belong to */
  promptId = ""

  readonly events = {
    subscribe: (listener: ClientListener) => {
      this.#listeners = [...this.#listeners, listener]
      return () => {
        this.#listeners = this.#listeners.filter((other) => other !== listener)
      }
    }
  }

  emit(event: ClientEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
  frame(frame: ServerFrame): void {
    this.emit({ type: "frame", frame })
  }
  event(event: AnyEvent): void {
    this.#seq += 1
    const frame = { type: "event", seq: this.#seq, promptId: this.promptId, ...event }
    this.frame(frame as ServerFrame)
  }
  tool(state: ToolState): void {
    this.emit({ type: "tool", ...state })
  }
  attach(ready: Partial<Ready> = {}): Ready {
    this.ready = { ...readyFrame, ...ready }
    this.emit({ type: "link", state: "connected", ready: this.ready })
    return this.ready
  }
  /** The answer to a call that needs the user's yes. */
  approval(ask: Partial<ApprovalAsk>, signal = new AbortController().signal): Promise<Approval> {
    const whole = {
      callId: "call_1",
      kinds: ["commit"] as const,
      title: "Run a command",
      detail: "",
      scope: ""
    }
    return this.#approve({ ...whole, ...ask }, signal)
  }

  answerApprovals(approve: Approve): void {
    this.#approve = approve
  }
  start(): Promise<Ready> {
    this.emit({ type: "link", state: "connecting", attempt: 1 })
    return Promise.resolve(this.attach())
  }
  prompt(text: string, images: ReadonlyArray<string> = []): string {
    this.promptId = `p${this.done.length}`
    this.done.push(["prompt", text, ...images])
    return this.promptId
  }
  steer(text: string, mode: NonNullable<Steer["mode"]>): string {
    this.done.push(["steer", text, mode])
    return randomUUID()
  }
  abort(options?: { readonly clearQueue?: boolean }): void {
    this.done.push(["abort", options])
  }
  compact(instructions?: string): string {
    this.done.push(["compact", instructions])
    return "c1"
  }
  reopen(changes: { readonly model?: string; readonly thinkingLevel?: ThinkingLevel }): Promise<Ready> {
    this.done.push(["reopen", changes])
    const { model, thinkingLevel = readyFrame.thinkingLevel } = changes
    const changed = model === undefined ? readyFrame.model : { ...readyFrame.model, id: model }
    return Promise.resolve(this.attach({ model: changed, thinkingLevel, resumed: true }))
  }
  newSession(): Promise<Ready> {
    this.done.push(["newSession"])
    return Promise.resolve(this.attach({ sessionId: "ses_0000000000000000000002" }))
  }
  resume(sessionId: string): Promise<Ready> {
    this.done.push(["resume", sessionId])
    return Promise.resolve(this.attach({ sessionId, resumed: true }))
  }
  bye(): Promise<void> {
    this.done.push(["bye"])
    return Promise.resolve()
  }
  sessions(): Promise<ReadonlyArray<AgentSession>> {
    return Promise.resolve(this.known)
  }
  upload(): Promise<string> {
    return Promise.resolve("fil_0000000000000000000001")
  }
}
