import type { ServerFrame, ToolRequest } from "#schemas/agents/ServerFrame.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import type { SimulatedServer } from "./SimulatedServer.ts"

/** The stages of a call on the client's machine, in order. A client may die between any two. */
export const stages = ["asked", "noted", "done", "finished", "sent"] as const
export type Stage = (typeof stages)[number]

/** The things that survive a client's death: its journal, and its commands' effects. */
export class Machine {
  readonly journalId: string
  /** calls that were begun, with their outcome once they have one */
  readonly journal = new Map<string, unknown>()
  constructor(journalId: string) {
    this.journalId = journalId
  }
}

/** The effects of commands and edits: how often each was carried out. */
export type Effects = Map<string, number>

export interface ClientHooks {
  /** the number of frames so far, both ways; true: the connection is cut before this one */
  readonly isCut: (frame: number, way: "in" | "out") => boolean
  /** true: the client dies here */
  readonly dies: (request: ToolRequest, stage: Stage) => boolean
}

const results: Readonly<Record<string, unknown>> = {
  "fs.read": { content: "a", totalLines: 1, truncated: false },
  "fs.grep": { matches: ["a.txt:1: x"], truncated: false },
  "fs.edit": { diff: "-a\n+b", replacements: 1 },
  "proc.exec": { exitCode: 0, output: "made", truncated: false }
}

const interrupted = { code: "interrupted", message: "outcome unknown" }

/** A client that keeps the rules of protocol 1: journal, resume, no frame twice. */
export class SimulatedClient {
  /** numbered frames in the order in which they were worked off */
  readonly seen: Array<ServerFrame & { readonly seq: number }> = []
  readonly faults: Array<string> = []
  lastSeq = 0
  sessionId: string | undefined
  isDead = false
  isDone = false
  readonly #machine: Machine
  readonly #effects: Effects
  readonly #hooks: ClientHooks
  readonly #counter: { frames: number }
  readonly #running = new Set<string>()
  #listener: HotSocketListener | undefined
  #connection = 0

  constructor(
    machine: Machine,
    effects: Effects,
    hooks: ClientHooks,
    counter: { frames: number },
    sessionId?: string
  ) {
    this.#machine = machine
    this.#effects = effects
    this.#hooks = hooks
    this.#counter = counter
    this.sessionId = sessionId
  }

  get isConnected(): boolean {
    return this.#listener !== undefined
  }

  connect(server: SimulatedServer): void {
    const connection = ++this.#connection
    const isCurrent = () => connection === this.#connection && !this.isDead
    this.#listener = server.connect({
      bufferedBytes: 0,
      send: (text) => {
        // As over a network: not within the call.
        if (!server.isDead) setImmediate(() => isCurrent() && !server.isDead && this.#receive(text))
        return true
      },
      close: () => setImmediate(() => isCurrent() && this.drop())
    })
    const resume = this.sessionId === undefined ? {} : { resume: this.sessionId, lastSeq: this.lastSeq }
    this.#send({
      type: "hello",
      protocol: 1,
      client: { version: "1", platform: "simulated", journalId: this.#machine.journalId },
      workspace: { root: "/w", name: "w" },
      ...resume
    })
  }

  /** The connection is gone. */
  drop(): void {
    const listener = this.#listener
    this.#listener = undefined
    this.#connection++
    if (listener !== undefined) setImmediate(() => listener.closed(1006))
  }

  die(): void {
    this.isDead = true
    this.drop()
  }

  #send(frame: Readonly<Record<string, unknown>>): void {
    if (this.isDead || this.#listener === undefined) return
    if (this.#hooks.isCut(++this.#counter.frames, "out")) return this.drop()
    const listener = this.#listener
    const text = JSON.stringify(frame)
    setImmediate(() => listener.received(text))
  }

  #receive(text: string): void {
    if (this.#hooks.isCut(++this.#counter.frames, "in")) return this.drop()
    const frame = JSON.parse(text) as ServerFrame
    if (frame.type === "ready") return this.#ready(frame.sessionId, frame.activePrompt)
    if (frame.type === "error") return void this.faults.push(`${frame.code}: ${frame.message}`)
    if (frame.type === "ping" || frame.type === "bye") return
    if (frame.seq <= this.lastSeq) return void this.faults.push(`${frame.seq} after ${this.lastSeq}`)
    this.lastSeq = frame.seq
    this.seen.push(frame)
    if (frame.type === "tool.request") void this.#work(frame)
    if (frame.type === "prompt.done") this.isDone = true
  }

  #ready(sessionId: string, active: string | undefined): void {
    this.sessionId = sessionId
    // Whether it had come is not known: it is sent again under the same id.
    if (active === undefined && !this.isDone) this.#send({ type: "prompt", id: "p1", text: "Go" })
  }

  async #work(request: ToolRequest): Promise<void> {
    const { callId, replay } = request
    if (this.#hooks.dies(request, "asked")) return this.die()
    if (this.#running.has(callId)) return
    const known = this.#machine.journal.get(callId)
    if (known !== undefined) return this.#answer(callId, known)
    if (this.#machine.journal.has(callId) && replay === "never")
      return this.#answer(callId, { ok: false, error: interrupted })
    this.#machine.journal.set(callId, undefined)
    this.#running.add(callId)
    if (this.#hooks.dies(request, "noted")) return this.die()
    await new Promise((resolve) => setImmediate(resolve))
    if (this.isDead) return
    this.#effects.set(callId, (this.#effects.get(callId) ?? 0) + 1)
    if (this.#hooks.dies(request, "done")) return this.die()
    const outcome = { ok: true, result: results[request.method] }
    this.#machine.journal.set(callId, outcome)
    this.#running.delete(callId)
    if (this.#hooks.dies(request, "finished")) return this.die()
    this.#answer(callId, outcome)
    if (this.#hooks.dies(request, "sent")) this.die()
  }

  #answer(callId: string, outcome: unknown): void {
    this.#send({ type: "tool.result", callId, durationMs: 1, ...(outcome as object) })
  }
}
