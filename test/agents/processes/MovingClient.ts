import { setTimeout as sleep } from "node:timers/promises"
import { WebSocket } from "ws"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"

type Frame = Readonly<Record<string, unknown>>

/** A command that the client was asked to run: it takes until the test says that it is done. */
export interface Running {
  readonly command: string
  readonly finish: () => void
}

interface Outcome {
  readonly done: Promise<object>
  readonly finish: () => void
}

/**
 * A client as the contract wants it, on a machine that stays up: it comes back to its session on the server it is sent
 * to, and answers a known call from its record, never by doing it again.
 */
export class MovingClient {
  readonly frames: Array<Frame> = []
  /** every command that was run, once for each time */
  readonly ran: Array<string> = []
  readonly running: Array<Running> = []
  sessionId = ""
  private readonly key: string
  private readonly outcomes = new Map<string, Outcome>()
  private lastSeq = 0
  private socket: WebSocket | undefined
  private server: ServerProcess
  private isLeaving = false

  constructor(server: ServerProcess, key: string) {
    this.server = server
    this.key = key
  }

  /** Connects, and again when it was sent away, until `leave`. */
  async stay(): Promise<void> {
    while (!this.isLeaving) {
      await this.visit()
      await sleep(50)
    }
  }

  /** Goes on at another server, as a client whose network changed: without a goodbye. */
  moveTo(server: ServerProcess): void {
    this.server = server
    this.socket?.terminate()
  }

  /** Ends the session, which counts among the live ones of its key otherwise. */
  leave(): void {
    this.isLeaving = true
    this.say({ type: "bye" })
    this.socket?.close()
  }

  /** Is gone, and its session goes on. */
  drop(): void {
    this.isLeaving = true
    this.socket?.terminate()
  }

  say(frame: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame))
  }

  private visit(): Promise<void> {
    return new Promise((resolve) => {
      const url = this.server.url.replace("http", "ws")
      const headers = { authorization: `Bearer ${this.key}` }
      const socket = new WebSocket(`${url}/api/v1/agent/ws`, { headers })
      this.socket = socket
      socket.on("open", () => this.greet())
      socket.on("message", (data) => this.heard(socket, JSON.parse(String(data)) as Frame))
      socket.on("error", () => socket.terminate())
      socket.on("close", () => resolve())
    })
  }

  private greet(): void {
    this.say({
      type: "hello",
      protocol: 1,
      client: { version: "0.0.1", platform: "test", journalId: "moving" },
      workspace: { root: "/work", name: "work" },
      model: "sandbox/coder",
      ...(this.sessionId === "" ? {} : { resume: this.sessionId, lastSeq: this.lastSeq })
    })
  }

  private heard(socket: WebSocket, frame: Frame): void {
    this.frames.push(frame)
    if (frame["type"] === "ready") this.sessionId = String(frame["sessionId"])
    else if (typeof frame["seq"] === "number") this.lastSeq = Math.max(this.lastSeq, frame["seq"])
    if (frame["type"] === "ping") this.say({ type: "pong", ts: frame["ts"], ack: this.lastSeq })
    if (frame["type"] === "tool.request") void this.work(socket, frame)
  }

  private async work(socket: WebSocket, { callId, params }: Frame): Promise<void> {
    const id = String(callId)
    const outcome = this.outcomes.get(id) ?? this.begin((params as { command: string }).command)
    this.outcomes.set(id, outcome)
    const result = await outcome.done
    if (socket.readyState !== WebSocket.OPEN) return
    socket.send(JSON.stringify({ type: "tool.result", callId, ok: true, result, durationMs: 1 }))
  }

  private begin(command: string): Outcome {
    this.ran.push(command)
    let finish = (): void => undefined
    const done = new Promise<object>((resolve) => {
      finish = () => resolve({ exitCode: 0, output: `did ${command}`, truncated: false })
    })
    this.running.push({ command, finish })
    return { done, finish }
  }
}
