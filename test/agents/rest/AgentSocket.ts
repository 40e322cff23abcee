import { WebSocket } from "ws"
import { until } from "#test/harness/Eventually.ts"

export type Frame = Readonly<Record<string, unknown>>

/** A client of the gateway that sends the test's frames, and keeps everything it receives. */
export class AgentSocket {
  readonly heard: Array<Frame> = []
  closedWith: number | undefined
  /** the fault of the connection */
  problem = ""
  readonly #socket: WebSocket

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (data) => this.heard.push(JSON.parse(String(data))))
    socket.on("close", (code) => (this.closedWith = code))
    socket.on("error", (error) => (this.problem = error.message))
  }

  /** Opens a socket and says hello; answers when the session is ready, or the socket closed again. */
  static async open(url: string, key: string, hello: object = {}): Promise<AgentSocket> {
    const ws = new WebSocket(`${url.replace(/^http/, "ws")}/api/v1/agent/ws`, {
      headers: { authorization: `Bearer ${key}` }
    })
    const socket = new AgentSocket(ws)
    await new Promise((resolve, reject) => ws.on("open", resolve).on("error", reject))
    socket.say({
      type: "hello",
      protocol: 1,
      client: { version: "0.0.1", platform: "test", journalId: "j-1" },
      workspace: { root: "/work", name: "work" },
      ...hello
    })
    await until("the session is ready", async () =>
      socket.closedWith !== undefined || socket.find("ready") !== undefined
        ? undefined
        : JSON.stringify(socket.heard)
    )
    // A machine that is busy with other tests may be asked to be asked again.
    return socket.find("error")?.["code"] === "overloaded" ? AgentSocket.open(url, key, hello) : socket
  }

  find(type: string): Frame | undefined {
    return this.heard.find((frame) => frame["type"] === type)
  }

  /** The first frame of a type, once it is there. */
  async hear(type: string): Promise<Frame> {
    await until(`there is ${type}`, async () =>
      this.find(type) === undefined ? JSON.stringify(this.heard) : undefined
    )
    return this.find(type) ?? {}
  }

  get ready(): Frame {
    const ready = this.find("ready")
    if (ready === undefined)
      throw new Error(`no ready: ${this.closedWith} ${this.problem} ${JSON.stringify(this.heard)}`)
    return ready
  }

  get sessionId(): string {
    return String(this.ready["sessionId"])
  }

  say(frame: object): void {
    this.#socket.send(JSON.stringify(frame))
  }

  async closed(): Promise<number | undefined> {
    await until("the socket is closed", async () =>
      this.closedWith === undefined ? JSON.stringify(this.heard) : undefined
    )
    return this.closedWith
  }

  leave(): void {
    this.#socket.terminate()
  }
}
