import type { AgentSession, AttachedClient } from "#actors/agents/AgentSession.ts"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type {
  ClientFrame,
  Hello,
  Prompt,
  Steer,
  ToolResult,
  ToolStream
} from "#schemas/agents/ClientFrame.ts"
import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import type { QueuedStep } from "#streams/agents/Step.ts"
import { complain, refuse, sendAway } from "./CloseFrames.ts"
import { decodeFrame, isFault } from "./FrameDecoder.ts"

/** The gateway, as its sockets see it. */
export interface SocketKeeper {
  readonly framesPerSecond: number
  readonly bytesPerSecond: number
  /** the present second, counted from any beginning */
  readonly second: () => number
  readonly nowMillis: () => number
  /** Attaches the client that sends hello, here or, with the frames after it, at the session's home. */
  readonly greet: (socket: ClientSocket, hello: Hello, text: string) => void
  /** The client wants its session to end. */
  readonly end: (session: AgentSession) => void
  readonly left: (socket: ClientSocket) => void
}

/** Characters that a client may send between its hello and the answer. */
const earlyLengthMax = 4 * 1024 * 1024

/** One client's socket: its frames are read here and handed to its session. */
export class ClientSocket implements HotSocketListener {
  readonly key: Principal
  readonly sink: FrameSink
  /** monotonic milliseconds of the last sign of life */
  heardAt: number
  session: AgentSession | undefined
  isClosed = false
  readonly #keeper: SocketKeeper
  #isGreeted = false
  #client: AttachedClient | undefined
  /** where frames go when the session's home is elsewhere */
  #there: HotSocketListener | undefined
  /** frames between the hello and its answer */
  #early: Array<string> | undefined
  #earlyLength = 0
  #frames = 0
  #bytes = 0
  /** the second in which these were counted */
  #countedSecond = 0

  constructor(keeper: SocketKeeper, key: Principal, sink: FrameSink) {
    this.#keeper = keeper
    this.key = key
    this.sink = sink
    this.heardAt = keeper.nowMillis()
  }

  /** Whether the client has sent its hello, with any outcome. */
  get isGreeted(): boolean {
    return this.#isGreeted
  }

  /** Frames go to a home elsewhere, which looks after the client. */
  get isRelayed(): boolean {
    return this.#there !== undefined
  }

  received(message: string | Uint8Array): void {
    if (this.isClosed) return
    this.heardAt = this.#keeper.nowMillis()
    if (this.#isFlooding(message.length))
      return refuse(this.sink, "rate_limited", "Too many frames, or bytes, a second")
    if (typeof message !== "string") return refuse(this.sink, "bad_frame", "A frame is text, not bytes")
    if (this.#there !== undefined) return this.#there.received(message)
    if (this.#early !== undefined) return this.#keepEarly(this.#early, message)
    this.#read(message)
  }

  drained(): void {
    if (this.#there === undefined) this.session?.outbox.drained()
    else this.#there.drained()
  }

  closed(code: number): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#keeper.left(this)
    this.#there?.closed(code)
    if (this.#client !== undefined) this.session?.detach(this.#client)
  }

  /** The hello is answered: this client is about to be attached. */
  belongsTo(session: AgentSession, client: AttachedClient): void {
    this.session = session
    this.#client = client
  }

  /** Called once attached: the session takes all further frames, and first those that came meanwhile. */
  readEarly(): void {
    const early = this.#early ?? []
    this.#early = undefined
    for (const message of early) if (!this.isClosed) this.#read(message)
  }

  relayed(there: HotSocketListener): void {
    // It left while its session's home was looked for.
    if (this.isClosed) return there.closed(1006)
    this.#there = there
    const early = this.#early ?? []
    this.#early = undefined
    for (const message of early) there.received(message)
  }

  /** False once the session was given to another socket, or has ended: further frames belong to no session. */
  get isAttached(): boolean {
    return this.session !== undefined && this.session.client === this.#client
  }

  #keepEarly(early: Array<string>, message: string): void {
    early.push(message)
    this.#earlyLength += message.length
    if (this.#earlyLength > earlyLengthMax) refuse(this.sink, "rate_limited", "Too much at once before ready")
  }

  #isFlooding(length: number): boolean {
    const second = this.#keeper.second()
    if (second !== this.#countedSecond) {
      this.#countedSecond = second
      this.#frames = 0
      this.#bytes = 0
    }
    this.#frames++
    this.#bytes += length
    return this.#frames > this.#keeper.framesPerSecond || this.#bytes > this.#keeper.bytesPerSecond
  }

  #read(text: string): void {
    const frame = decodeFrame(text)
    if (!this.#isGreeted) return this.#greet(frame, text)
    if (isFault(frame)) {
      const { isHopeless, message, ...meant } = frame
      return isHopeless
        ? refuse(this.sink, "bad_frame", message)
        : complain(this.sink, "bad_frame", message, meant)
    }
    const { session } = this
    if (session?.isEnding === false && this.isAttached) this.#handle(session, frame)
  }

  #greet(frame: ReturnType<typeof decodeFrame>, text: string): void {
    if (isFault(frame)) {
      const isProtocol = frame.message.startsWith("protocol:")
      return refuse(this.sink, isProtocol ? "bad_protocol" : "bad_frame", frame.message)
    }
    if (frame.type !== "hello") return refuse(this.sink, "hello_required", "The first frame is a hello")
    this.#isGreeted = true
    this.#early = []
    this.#keeper.greet(this, frame, text)
  }

  #handle(session: AgentSession, frame: ClientFrame): void {
    switch (frame.type) {
      case "hello":
        return complain(this.sink, "bad_frame", "type: hello was said before")
      case "prompt":
        return this.#prompt(session, frame)
      case "steer":
        return this.#steer(session, frame)
      case "abort":
        if (frame.id === undefined || frame.id === session.active?.id)
          session.abort(frame.clearQueue === true)
        return
      case "compact": {
        if (session.hasSeen(frame.id)) return
        const { id, instructions = "" } = frame
        if (session.active !== undefined) return this.#busy(id)
        return session.begin({ kind: "compact", id, instructions })
      }
      case "tool.result":
        return this.#result(session, frame)
      case "tool.stream":
        return this.#stream(session, frame)
      case "pong":
        return session.outbox.acknowledge(frame.ack)
      case "bye":
        return this.#keeper.end(session)
    }
  }

  /** A frame that was repeated because its answer was lost counts once. */
  #prompt(session: AgentSession, { id, images = [], text }: Prompt): void {
    if (session.hasSeen(id)) return
    if (session.active !== undefined) return this.#busy(id)
    session.begin({ kind: "prompt", id, text, images })
  }

  /** Without work to steer, the text becomes a prompt: it must not be lost. */
  #steer(session: AgentSession, { id, mode = "steer", text }: Steer): void {
    if (session.hasSeen(id)) return
    if (session.active === undefined) return session.begin({ kind: "prompt", id, text, images: [] })
    const waiting: QueuedStep = { kind: "queued", id, text, mode }
    if (!hasRoom(session.queue, waiting)) return complain(this.sink, "busy", queueIsFull, { id })
    session.enqueue(waiting)
  }

  #busy(id: string): void {
    complain(this.sink, "busy", "A prompt is being worked on; steer it, or wait for prompt.done", { id })
  }

  #result(session: AgentSession, frame: ToolResult): void {
    const { callId } = frame
    if (session.calls.result(frame)) return
    // It came before, and was sent again because the client could not know that.
    if (session.conversation?.hasResult(callId) === true) return
    complain(this.sink, "unknown_call", `No call ${callId} is open`, { callId })
  }

  #stream(session: AgentSession, frame: ToolStream): void {
    const { callId, stream } = frame
    const taken = session.calls.stream(frame)
    if (taken === undefined)
      return complain(this.sink, "unknown_call", `No call ${callId} is open`, { callId })
    if (taken.data !== "") session.say({ kind: "tool_update", callId, stream, data: taken.data })
  }

  /** No sign of life for too long. */
  expire(): void {
    sendAway(this.sink, "idle", closeCodes.idle)
  }
}

const queueIsFull = `At most ${agentLimits.queue} messages wait, of ${agentLimits.queueBytes / 1024} KiB together`

const hasRoom = (queue: ReadonlyArray<QueuedStep>, more: QueuedStep): boolean =>
  queue.length < agentLimits.queue &&
  Buffer.byteLength(JSON.stringify([...queue, more])) <= agentLimits.queueBytes
