import { type AddressInfo, createServer, type Socket } from "node:net"
import { type SecureContextOptions, TLSSocket } from "node:tls"
import { Effect, type Scope } from "effect"

/** Places in a session at which the sink can do as it is told; "end" is the final dot. */
export const sinkSteps = [
  "greeting",
  "ehlo",
  "starttls",
  "auth",
  "mail",
  "rcpt",
  "data",
  "end",
  "rset",
  "quit"
] as const
export type SinkStep = (typeof sinkSteps)[number]

/** A reply as bytes, perhaps after some milliseconds; or none, with the connection kept or closed. */
export type Move = string | { readonly reply: string; readonly afterMillis: number } | "stall" | "drop"

export interface SinkScript {
  readonly moves?: Partial<Record<SinkStep, Move | ((nth: number, line: string) => Move | undefined)>>
  /** lines of EHLO; STARTTLS and AUTH are added by the two below */
  readonly extensions?: ReadonlyArray<string>
  readonly tls?: SecureContextOptions
  /** TLS from the first byte */
  readonly isImplicit?: boolean
  readonly auth?: string
  /** a connection is closed after so many bytes of its client */
  readonly cutAfter?: number
}

export interface Accepted {
  readonly from: string
  readonly to: ReadonlyArray<string>
  /** without the dots that SMTP adds */
  readonly message: string
  readonly isTls: boolean
}

/** An SMTP server for tests that plays by a script, and knows which messages it has taken. */
export interface Sink {
  readonly port: number
  /** messages whose final dot came and was not refused, whether the reply to it arrived or not */
  readonly accepted: ReadonlyArray<Accepted>
  /** commands in order, of all connections */
  readonly commands: ReadonlyArray<string>
  /** the message that is being taken, as far as it came */
  readonly underWay: () => string
  readonly connections: () => { readonly open: number; readonly most: number; readonly all: number }
  /** from now on */
  readonly play: (script: SinkScript) => void
  /** writes to every connection */
  readonly say: (text: string) => void
  readonly dropAll: () => void
  readonly close: Effect.Effect<void>
}

const replies: Record<SinkStep, string> = {
  greeting: "220 sink ESMTP\r\n",
  ehlo: "",
  starttls: "220 go ahead\r\n",
  auth: "235 2.7.0 welcome\r\n",
  mail: "250 2.1.0 sender ok\r\n",
  rcpt: "250 2.1.5 recipient ok\r\n",
  data: "354 go ahead\r\n",
  end: "250 2.0.0 taken\r\n",
  rset: "250 reset\r\n",
  quit: "221 bye\r\n"
}

const verbs: Record<string, SinkStep> = {
  EHLO: "ehlo",
  HELO: "ehlo",
  STARTTLS: "starttls",
  AUTH: "auth",
  MAIL: "mail",
  RCPT: "rcpt",
  DATA: "data",
  RSET: "rset",
  QUIT: "quit"
}

interface State {
  script: SinkScript
  readonly accepted: Array<Accepted>
  readonly commands: Array<string>
  readonly counts: Map<SinkStep, number>
  readonly sessions: Set<SinkSession>
  most: number
  all: number
}

class SinkSession {
  message = ""
  private buffer = ""
  private received = 0
  private isPaused = false
  private isInData = false
  private isTls = false
  private from = ""
  private to: Array<string> = []
  private socket: Socket
  private readonly state: State

  constructor(socket: Socket, state: State) {
    this.state = state
    this.socket = socket
    this.listen(socket)
    if (state.script.isImplicit === true) this.upgrade()
    this.play("greeting", "")
  }

  say(text: string): void {
    if (!this.socket.destroyed) this.socket.write(text, "latin1")
  }

  drop(): void {
    this.isPaused = true
    this.socket.destroy()
  }

  private listen(socket: Socket): void {
    socket.setNoDelay(true)
    socket.on("data", (bytes: Buffer) => {
      const { cutAfter = Infinity } = this.state.script
      const taken = bytes.subarray(0, Math.max(0, cutAfter - this.received))
      this.received += taken.length
      this.buffer += taken.toString("latin1")
      this.run()
      if (this.received >= cutAfter) this.drop()
    })
    // A client that goes away is part of the tests; "close" tells of it.
    socket.on("error", () => this.state.sessions.delete(this))
    socket.on("close", () => this.state.sessions.delete(this))
  }

  private upgrade(): void {
    this.socket.removeAllListeners("data")
    const secured = new TLSSocket(this.socket, { isServer: true, ...this.state.script.tls })
    this.socket = secured
    this.isTls = true
    this.buffer = ""
    this.listen(secured)
  }

  private run(): void {
    while (!this.isPaused) {
      const end = this.buffer.indexOf("\r\n")
      if (end < 0) return
      const line = this.buffer.slice(0, end)
      this.buffer = this.buffer.slice(end + 2)
      if (this.isInData) this.takeLine(line)
      else this.command(line)
    }
  }

  get partial(): string {
    return this.isInData ? this.message + this.buffer : ""
  }

  private takeLine(line: string): void {
    if (line !== ".") this.message += `${line.startsWith(".") ? line.slice(1) : line}\r\n`
    else {
      this.isInData = false
      this.play("end", line)
    }
  }

  private command(line: string): void {
    this.state.commands.push(line)
    const step = verbs[line.split(/[ :]/)[0]?.toUpperCase() ?? ""]
    if (step === undefined) return this.say("500 5.5.1 what\r\n")
    if (step === "starttls" && this.state.script.tls === undefined)
      return this.say("502 5.5.1 no STARTTLS\r\n")
    if (step === "auth" && this.state.script.auth === undefined) return this.say("503 5.5.1 no AUTH\r\n")
    this.play(step, line)
  }

  private play(step: SinkStep, line: string): void {
    const nth = (this.state.counts.get(step) ?? 0) + 1
    this.state.counts.set(step, nth)
    const scripted = this.state.script.moves?.[step]
    const move = (typeof scripted === "function" ? scripted(nth, line) : scripted) ?? this.usual(step)
    const reply = typeof move === "object" ? move.reply : move
    this.note(step, line, reply)
    if (move === "stall") this.isPaused = true
    else if (move === "drop") this.drop()
    else if (typeof move === "string") this.answer(step, move)
    else {
      this.isPaused = true
      setTimeout(() => {
        this.isPaused = false
        this.answer(step, move.reply)
        this.run()
      }, move.afterMillis)
    }
  }

  /** A transaction's state, by the reply that is meant. */
  private note(step: SinkStep, line: string, reply: string): void {
    const isTaken = !/^[45]/.test(reply)
    const address = /<(.*)>/.exec(line)?.[1] ?? ""
    if (step === "mail" || step === "rset") this.to = []
    if (step === "mail") this.from = address
    if (step === "rcpt" && reply.startsWith("2")) this.to.push(address)
    if (step === "end" && isTaken && this.to.length > 0) {
      const { from, isTls, message, to } = this
      this.state.accepted.push({ from, to, message, isTls })
    }
    if (step === "end") this.to = []
  }

  private answer(step: SinkStep, reply: string): void {
    this.say(reply)
    if (step === "starttls" && reply.startsWith("220")) this.upgrade()
    if (step === "data") {
      this.isInData = reply.startsWith("354")
      this.message = ""
    }
    if (step === "quit") {
      this.socket.end()
      this.state.sessions.delete(this)
    }
  }

  private usual(step: SinkStep): string {
    if (step === "data" && this.to.length === 0) return "554 5.5.1 no valid recipients\r\n"
    if (step !== "ehlo") return replies[step]
    const { auth, extensions = ["PIPELINING"], tls } = this.state.script
    const lines = [
      "sink",
      ...extensions,
      ...(tls !== undefined && !this.isTls ? ["STARTTLS"] : []),
      ...(auth === undefined ? [] : [`AUTH ${auth}`])
    ]
    return lines.map((text, n) => `250${n === lines.length - 1 ? " " : "-"}${text}\r\n`).join("")
  }
}

export const startSink = (script: SinkScript = {}): Effect.Effect<Sink, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Sink>((resume) => {
      const state: State = {
        script,
        accepted: [],
        commands: [],
        counts: new Map(),
        sessions: new Set(),
        most: 0,
        all: 0
      }
      const server = createServer((socket) => {
        state.all++
        state.sessions.add(new SinkSession(socket, state))
        state.most = Math.max(state.most, state.sessions.size)
      })
      const dropAll = (): void => state.sessions.forEach((session) => session.drop())
      const close = Effect.callback<void>((done) => {
        server.close(() => done(Effect.void))
        dropAll()
      })
      server.listen(0, "127.0.0.1", () =>
        resume(
          Effect.succeed({
            port: (server.address() as AddressInfo).port,
            accepted: state.accepted,
            commands: state.commands,
            underWay: () => Array.from(state.sessions, (session) => session.partial).join(""),
            connections: () => ({ open: state.sessions.size, most: state.most, all: state.all }),
            play: (next) => {
              state.script = next
              state.counts.clear()
            },
            say: (text) => state.sessions.forEach((session) => session.say(text)),
            dropAll,
            close
          })
        )
      )
    }),
    ({ close }) => close
  )
