import { until } from "#test/harness/Eventually.ts"
import { AgentSocket, type Frame } from "#test/agents/rest/AgentSocket.ts"

/** A client's reaction to a call: its outcome, or nothing. */
export type Doing = (request: Frame) => object | undefined

const results: Readonly<Record<string, object>> = {
  "fs.read": { content: "one\ntwo", totalLines: 2, truncated: false },
  "fs.write": { bytes: 3, created: true },
  "fs.edit": { diff: "-a\n+b", replacements: 1 },
  "fs.list": { entries: ["a.txt"], truncated: false },
  "fs.glob": { entries: ["a.txt"], truncated: false },
  "fs.grep": { matches: ["a.txt:1: one"], truncated: false },
  "proc.exec": { exitCode: 0, output: "done", truncated: false }
}

export const succeeds: Doing = ({ method }) => ({ ok: true, result: results[String(method)] })

/** A client of a session that carries out nothing and gives the test's answers to calls. */
export class AgentClient {
  readonly #socket: AgentSocket
  #worked = 0
  readonly #doing: Doing

  private constructor(socket: AgentSocket, doing: Doing) {
    this.#socket = socket
    this.#doing = doing
  }

  static async open(
    url: string,
    key: string,
    hello: object = {},
    doing: Doing = succeeds
  ): Promise<AgentClient> {
    return new AgentClient(await AgentSocket.open(url, key, hello), doing)
  }

  get sessionId(): string {
    return this.#socket.sessionId
  }

  get frames(): ReadonlyArray<Frame> {
    return this.#socket.heard
  }

  get closedWith(): number | undefined {
    return this.#socket.closedWith
  }

  /** the last number heard */
  get seq(): number {
    return Math.max(0, ...this.frames.map(({ seq }) => (typeof seq === "number" ? seq : 0)))
  }

  say(frame: object): void {
    this.#socket.say(frame)
  }

  leave(): void {
    this.#socket.leave()
  }

  closed(): Promise<number | undefined> {
    return this.#socket.closed()
  }

  of(type: string): ReadonlyArray<Frame> {
    return this.frames.filter((frame) => frame["type"] === type)
  }

  events(kind: string): ReadonlyArray<Frame> {
    return this.frames.filter((frame) => frame["kind"] === kind)
  }

  /** Waits for a frame, answering calls meanwhile. */
  async hears(what: string, is: (frame: Frame) => boolean): Promise<Frame> {
    await until(`there is ${what}`, async () => {
      this.#work()
      return this.frames.some(is) ? undefined : `${this.closedWith} ${JSON.stringify(this.frames.slice(-5))}`
    })
    return this.frames.find(is) ?? {}
  }

  /** Waits for a frame and answers no call. */
  async awaits(what: string, is: (frame: Frame) => boolean): Promise<Frame> {
    await until(`there is ${what}`, async () =>
      this.frames.some(is) ? undefined : JSON.stringify(this.frames.slice(-5))
    )
    return this.frames.find(is) ?? {}
  }

  /** Asks, and works until it is done. */
  async ask(id: string, text: string, more: object = {}): Promise<Frame> {
    this.say({ type: "prompt", id, text, ...more })
    return this.done(id)
  }

  done(id: string): Promise<Frame> {
    return this.hears(`prompt.done ${id}`, (frame) => frame["type"] === "prompt.done" && frame["id"] === id)
  }

  answer({ callId }: Frame, outcome: object): void {
    this.say({ type: "tool.result", callId, durationMs: 1, ...outcome })
  }

  #work(): void {
    const requests = this.of("tool.request")
    for (const request of requests.slice(this.#worked)) {
      this.#worked++
      const outcome = this.#doing(request)
      if (outcome !== undefined) this.answer(request, outcome)
    }
  }
}

interface Part {
  readonly type: string
  readonly text?: string
}

export const textOf = (message: Frame | undefined): string =>
  ((message?.["content"] ?? []) as ReadonlyArray<Part>)
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("")
