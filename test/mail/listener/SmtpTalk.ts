import { connect, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** A client that writes bytes as the test says, and reads replies. */
export interface SmtpTalk {
  /** the next reply, of all its lines; "" once the server has closed the connection */
  readonly reply: Effect.Effect<string>
  readonly write: (text: string) => void
  /** a command, and its reply */
  readonly say: (line: string) => Effect.Effect<string>
  /** the first three characters of the reply */
  readonly code: (line: string) => Effect.Effect<string>
  readonly end: () => void
}

/** One that has read the greeting. */
export const talkTo = (
  port: number,
  localAddress = "127.0.0.1"
): Effect.Effect<SmtpTalk & { readonly greeting: string }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => connect({ port, host: "127.0.0.1", localAddress })),
      (open) => Effect.sync(() => open.destroy())
    )
    const talk = talkBy(socket)
    return { ...talk, greeting: yield* talk.reply }
  })

const talkBy = (socket: Socket): SmtpTalk => {
  let received = ""
  let isClosed = false
  let look = (): void => undefined
  socket.setEncoding("latin1")
  socket.on("data", (text: string) => {
    received += text
    look()
  })
  const close = (): void => {
    isClosed = true
    look()
  }
  socket.on("end", close)
  socket.on("close", close)
  socket.on("error", close)

  const reply = Effect.callback<string>((resume) => {
    look = () => {
      const [whole] = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(received) ?? []
      if (whole === undefined && !isClosed) return
      received = received.slice(whole?.length ?? 0)
      look = () => undefined
      resume(Effect.succeed(whole?.trimEnd() ?? ""))
    }
    look()
  })
  const write = (text: string): void => {
    if (!socket.destroyed) socket.write(text, "latin1")
  }
  const say = (line: string): Effect.Effect<string> =>
    Effect.suspend(() => {
      write(`${line}\r\n`)
      return reply
    })
  return {
    reply,
    write,
    say,
    code: (line) => Effect.map(say(line), (text) => text.slice(0, 3)),
    end: () => void socket.end()
  }
}
