import { LoadSession, type LoadCounts, type LoadHome } from "./LoadSession.ts"
import type { Command, Report, WorkerOptions } from "./SocketLoad.ts"

/** The process behind `startSockets`. */

/** Handshakes under way at once: more would only wait in the server's backlog, and some be sent again by the kernel. */
const connectsAtOnce = 128

class Load implements LoadHome {
  readonly counts: LoadCounts = {
    attached: 0,
    resumed: 0,
    speaking: 0,
    holding: 0,
    done: 0,
    whole: 0,
    pieces: 0,
    gaps: 0,
    slow: 0,
    retries: 0,
    failures: 0
  }
  readonly delays: Array<number> = []
  private firstFailure = ""
  private readonly sessions: ReadonlyArray<LoadSession>
  private readonly waiting: Array<LoadSession> = []
  private connecting = 0

  constructor({ keys, name, path, port }: WorkerOptions) {
    this.sessions = keys.map((key, index) => new LoadSession(this, { port, path, key }, `${name}-${index}`))
  }

  readonly fail = (what: string): void => {
    this.counts.failures++
    if (this.counts.failures === 1) this.firstFailure = what
  }

  readonly connect = (session: LoadSession, inMillis: number): void => {
    setTimeout(() => {
      this.waiting.push(session)
      this.next()
    }, inMillis)
  }

  readonly settled = (): void => {
    this.connecting--
    this.next()
  }

  obey(command: Command): void {
    if (command.do === "progress")
      return tell({ progress: { ...this.counts }, firstFailure: this.firstFailure })
    if (command.do === "latencies") {
      tell({ latencies: Float64Array.from(this.delays) })
      this.delays.length = 0
      return
    }
    if (command.do === "attach") {
      this.waiting.push(...this.sessions)
      return this.next()
    }
    const { count, from } = command
    for (const [index, session] of this.sessions.slice(from, from + count).entries()) {
      if (command.do === "prompt")
        setTimeout(() => session.prompt(command.script), (command.overMillis * index) / count)
      else if (command.do === "answerCalls") session.answerCalls()
      else if (command.do === "print") session.print(command.print)
      else if (command.do === "read") session.read()
      else session.isMeasured = true
    }
  }

  private next(): void {
    while (this.connecting < connectsAtOnce) {
      const session = this.waiting.shift()
      if (session === undefined) return
      this.connecting++
      session.connect()
    }
  }
}

const tell = (report: Report): void => void process.send?.(report)

process.once("message", (options: WorkerOptions) => {
  const load = new Load(options)
  process.on("message", (command: Command) => load.obey(command))
  process.once("disconnect", () => process.exit(0))
})
