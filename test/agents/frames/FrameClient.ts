import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { FrameSocket, type Heard } from "./FrameSocket.ts"

const decode = Schema.decodeUnknownSync(ServerFrame)

export const hello = (more: object = {}): object => ({
  type: "hello",
  protocol: 1,
  client: { version: "0.0.1", platform: "test", journalId: "frames" },
  workspace: { root: "/work", name: "work" },
  model: "sandbox/coder",
  ...more
})

/** A client of the gateway that comes back to its session whenever its socket was closed. */
export class FrameClient {
  socket: FrameSocket
  sessionId: string
  private readonly url: string
  private readonly key: string
  private marks = 0

  private constructor(url: string, key: string, socket: FrameSocket, sessionId: string) {
    this.url = url
    this.key = key
    this.socket = socket
    this.sessionId = sessionId
  }

  static async open(url: string, key: string): Promise<FrameClient> {
    const client = new FrameClient(url, key, await FrameSocket.open(url, key, hello()), "")
    await client.ready()
    return client
  }

  /** On a new socket: the same session, or another where it is over. */
  async comeBack(): Promise<void> {
    this.socket.destroy()
    const more = this.sessionId === "" ? {} : { resume: this.sessionId }
    this.socket = await FrameSocket.open(this.url, this.key, hello(more))
    await this.ready()
  }

  /**
   * The server's answers until it is known to have read everything sent so far: to a result of no call, which comes
   * last, or by closing the socket.
   */
  async answers(send: (socket: FrameSocket) => void): Promise<ReadonlyArray<Heard>> {
    const from = this.socket.heard.length
    const callId = `mark-${this.marks++}`
    send(this.socket)
    this.socket.say({ type: "tool.result", callId, ok: true, durationMs: 0 })
    await this.socket.hear((frame) => frame["callId"] === callId && frame["type"] === "error", from)
    return this.socket.heard.slice(from).filter((frame) => frame["callId"] !== callId)
  }

  private async ready(): Promise<void> {
    const ready = await this.socket.hear(({ type }) => type === "ready")
    assert.isDefined(
      ready,
      `no ready, but ${JSON.stringify(this.socket.heard)} and ${this.socket.closedWith}`
    )
    this.sessionId = String(ready?.["sessionId"])
  }
}

/** Checks the invariants of all server frames: their schema, a bound, and numbers that rise. */
export const assertSound = ({ heard, longest }: FrameSocket): void => {
  assert.isAtMost(longest, agentLimits.frameBytes, "a frame of the server is longer than a frame may be")
  let last = 0
  for (const frame of heard) {
    const decoded = decode(frame)
    assert.notStrictEqual(frame["code"], "internal", JSON.stringify(frame))
    if (!("seq" in decoded) || decoded.type === "ready") continue
    // A gap has the number of the last frame that may be missing, which may be there.
    const isGap = decoded.type === "event" && decoded.kind === "replay_gap"
    assert.isAbove(decoded.seq, isGap ? last - 1 : last, JSON.stringify(frame))
    last = decoded.seq
  }
}
