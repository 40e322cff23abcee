import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Duplex } from "node:stream"
import { Schema } from "effect"
import { type WebSocket, WebSocketServer } from "ws"
import { ClientFrame, type ToolResult } from "#schemas/agents/ClientFrame.ts"
import type { EventKind, EventOf, PromptStatus, Ready } from "#schemas/agents/ServerFrame.ts"
import { tools, type ToolMethod } from "#schemas/agents/ToolCall.ts"

export const sessionId = `ses_${"a".repeat(22)}`
export const otherSessionId = `ses_${"b".repeat(22)}`

type Fields = Readonly<Record<string, unknown>>
interface Numbered extends Fields {
  readonly type: string
  readonly seq: number
}

/** The cut of a connection: at the frame of this number, counted over the whole session from 1, once. */
export type Cut =
  /** sent, and nothing after it */
  | { readonly at: "after_sending"; readonly frame: number }
  /** numbered, and never sent over this connection */
  | { readonly at: "before_sending"; readonly frame: number }
  /** a frame of the client got lost */
  | { readonly at: "before_receiving"; readonly frame: number }
  /** a frame of the client was worked off, and its answer got lost */
  | { readonly at: "after_receiving"; readonly frame: number }

/** The course of a prompt, written down as the loop of a server would do it. */
export type Script = (session: ScriptedSession, prompt: { id: string; text: string }) => Promise<void>

export interface Refusal {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const decodeFrame = Schema.decodeUnknownSync(Schema.fromJsonString(ClientFrame))
const usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 }

/** One session of the scripted server: its frames, kept for every resume, and its open calls. */
export class ScriptedSession {
  readonly sent: Array<Numbered> = []
  readonly prompts: Array<string> = []
  readonly results = new Map<string, Array<ToolResult>>()
  active: string | undefined
  private readonly open = new Map<
    string,
    { ask: Fields & { readonly type: string }; attempt: number; settle: (r: ToolResult) => void }
  >()
  private readonly script: Script
  private seq = 0
  deliver: ((frame: Numbered) => void) | undefined

  constructor(script: Script) {
    this.script = script
  }

  /** The last number given. */
  get last(): number {
    return this.seq
  }

  event<K extends EventKind>(kind: K, fields: EventOf<K> extends infer E ? Omit<E, "kind"> : never): void {
    this.say({ type: "event", promptId: this.active ?? "", kind, ...fields })
  }

  text(messageId: string, text: string): void {
    this.event("message_end", {
      messageId,
      model: "m",
      content: [{ type: "text", text }],
      stopReason: "stop",
      usage,
      costUsd: 0
    })
  }

  async call(callId: string, method: ToolMethod, params: unknown): Promise<ToolResult> {
    const tool = tools.find((known) => known.method === method)
    const replay = tool?.replay ?? "never"
    this.event("tool_start", { callId, tool: tool?.name ?? method, args: params })
    const result = await new Promise<ToolResult>((settle) => {
      const ask = {
        type: "tool.request",
        callId,
        promptId: this.active,
        method,
        params,
        timeoutMs: 9_000,
        replay
      }
      this.open.set(callId, { ask, attempt: 1, settle })
      if (this.deliver !== undefined) this.say({ ...ask, attempt: 1 })
    })
    const { denied = false, durationMs, error, ok } = result
    this.event("tool_end", { callId, ok, denied, durationMs, ...(error && { error }) })
    return result
  }

  cancel(callId: string): void {
    this.say({ type: "tool.cancel", callId, reason: "abort" })
  }

  done(status: PromptStatus = "completed", toolCallsDenied = 0): void {
    const id = this.active ?? ""
    this.active = undefined
    const counts = { turns: 1, toolCalls: this.results.size, toolCallsDenied }
    this.say({ type: "prompt.done", id, status, usage, costUsd: 0, coveredBySubscription: false, ...counts })
  }

  say(frame: Fields & { readonly type: string }): void {
    const numbered = { ...frame, seq: ++this.seq }
    this.sent.push(numbered)
    this.deliver?.(numbered)
  }

  attach(lastSeq: number, deliver: (frame: Numbered) => void): void {
    for (const frame of this.sent) if (frame.seq > lastSeq && frame.type !== "tool.request") deliver(frame)
    this.deliver = deliver
    for (const call of this.open.values()) this.say({ ...call.ask, attempt: ++call.attempt })
  }

  take(frame: ClientFrame): void {
    if (frame.type === "prompt") this.prompted(frame)
    if (frame.type === "steer") {
      this.event("queue_update", { queue: [{ id: frame.id, text: frame.text, mode: frame.mode ?? "steer" }] })
    }
    if (frame.type !== "tool.result") return
    this.results.set(frame.callId, [...(this.results.get(frame.callId) ?? []), frame])
    const call = this.open.get(frame.callId)
    this.open.delete(frame.callId)
    call?.settle(frame)
  }

  private prompted({ id, text }: { readonly id: string; readonly text: string }): void {
    if (this.prompts.includes(id)) return
    this.prompts.push(id)
    this.active = id
    this.event("turn_start", { turn: 1, text })
    void this.script(this, { id, text })
  }
}

/** A gateway with one session that does what a test wrote down, over real sockets. */
export class ScriptedServer {
  readonly received: Array<ClientFrame> = []
  readonly session: ScriptedSession
  readonly keys: Array<string | undefined> = []
  /** upgrades that are refused, the first one first */
  refusals: Array<Refusal> = []
  cut: Cut | undefined
  /** changes `ready` before it is sent */
  ready: (ready: Ready) => Fields = (ready) => ({ ...ready })
  /** answers of GET, by path */
  readonly answers = new Map<string, { readonly status: number; readonly body: unknown }>()
  private readonly http: Server
  private readonly sockets = new WebSocketServer({ noServer: true })
  private framesSent = 0
  private framesReceived = 0

  private constructor(script: Script) {
    this.session = new ScriptedSession(script)
    this.http = createServer((request, response) => {
      const { body, status } = this.answers.get(request.url ?? "") ?? {
        status: 404,
        body: { error: "Not found" }
      }
      this.keys.push(request.headers.authorization)
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    })
    this.http.on("upgrade", (request, socket, head) => this.upgrade(request, socket, head))
  }

  static async start(script: Script = () => Promise.resolve()): Promise<ScriptedServer> {
    const server = new ScriptedServer(script)
    await new Promise<void>((resolve) => server.http.listen(0, "127.0.0.1", resolve))
    return server
  }

  get url(): string {
    const address = this.http.address() as AddressInfo
    return `http://127.0.0.1:${address.port}`
  }

  /** The sockets that are open. */
  get connections(): ReadonlyArray<WebSocket> {
    return [...this.sockets.clients].filter((socket) => socket.readyState === socket.OPEN)
  }

  async close(): Promise<void> {
    for (const socket of this.sockets.clients) socket.terminate()
    await new Promise((resolve) => this.http.close(resolve))
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.keys.push(request.headers.authorization)
    const refusal = this.refusals.shift()
    if (refusal === undefined) {
      this.sockets.handleUpgrade(request, socket, head, (accepted) => this.accept(accepted))
      return
    }
    const headers = Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(
      `HTTP/1.1 ${refusal.status} No\r\nConnection: close\r\n${headers.join("")}\r\n${refusal.body ?? ""}`
    )
  }

  private accept(socket: WebSocket): void {
    socket.on("message", (data) => {
      const frame = decodeFrame(String(data))
      const number = ++this.framesReceived
      if (this.isCut(socket, "before_receiving", number)) return
      this.received.push(frame)
      if (frame.type === "hello") this.hello(socket, frame)
      else if (frame.type === "bye") {
        socket.send(JSON.stringify({ type: "bye", reason: "client_bye", resumable: true }))
        socket.close(1000)
      } else this.session.take(frame)
      this.isCut(socket, "after_receiving", number)
    })
    socket.on("close", () => {
      if (this.connections.length === 0) this.session.deliver = undefined
    })
  }

  private hello(socket: WebSocket, hello: Extract<ClientFrame, { type: "hello" }>): void {
    const limits = {
      frameBytes: 1_048_576,
      promptBytes: 262_144,
      streamChunkBytes: 16_384,
      streamBytes: 1_048_576,
      queue: 16,
      pingMillis: 25_000,
      deadMillis: 60_000
    }
    const { session } = this
    const ready = this.ready({
      type: "ready",
      sessionId: hello.resume ?? sessionId,
      resumed: hello.resume !== undefined,
      seq: session.last,
      model: { id: hello.model ?? "sandbox/coder", name: "Coder", context_length: 100_000 },
      thinkingLevel: hello.thinkingLevel ?? "off",
      tools: tools.map(({ name }) => name),
      billing: { mode: "free", plan: null, covers_direct_api: false },
      ...(session.active === undefined ? {} : { activePrompt: session.active }),
      limits
    })
    socket.send(JSON.stringify(ready))
    session.attach(hello.lastSeq ?? 0, (frame) => {
      if (socket.readyState !== socket.OPEN) return
      const number = ++this.framesSent
      if (this.isCut(socket, "before_sending", number)) return
      socket.send(JSON.stringify(frame))
      // A socket that is ended at once loses what it has not written: it is flushed, and then cut.
      if (this.cut?.at === "after_sending" && this.cut.frame === number) this.cutAfterFlush(socket)
    })
  }

  private cutAfterFlush(socket: WebSocket): void {
    this.cut = undefined
    this.session.deliver = undefined
    socket.close(1011)
  }

  private isCut(socket: WebSocket, at: Cut["at"], number: number): boolean {
    if (this.cut?.at !== at || this.cut.frame !== number) return false
    this.cut = undefined
    this.session.deliver = undefined
    socket.terminate()
    return true
  }
}
