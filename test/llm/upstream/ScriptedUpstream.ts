import { createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"

/** The upstream's actions at its end of a connection, one step after the other. */
export type Step =
  | { readonly send: string | Uint8Array }
  | { readonly pauseMillis: number }
  /** nothing more, until the client has had enough */
  | { readonly silence: true }
  | { readonly end: "close" | "reset" }

/** A request to it, and the asker's behaviour. */
export interface AskedOf {
  /** `POST /api/v1/chat/completions HTTP/1.1` */
  readonly requestLine: string
  /** lower-case names */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** the body's `model`; "" where it has none */
  readonly model: string
  /** the asker was gone before the script had come to its end */
  closedEarly: boolean
  /** nothing more happens with this request */
  isOver: boolean
}

export type Script = (asked: AskedOf) => Iterable<Step>

/**
 * An upstream on a bare socket that plays bytes, with any status, header and body, in any pieces, with pauses, cut anywhere.
 * Which bytes, the model says that is asked for.
 */
export interface ScriptedUpstream {
  /** the API's root */
  readonly url: string
  readonly port: number
  /** the script for requests of this model from now on */
  readonly script: (model: string, script: Script) => void
  /** every request for completions or embeddings so far, oldest first */
  readonly asked: ReadonlyArray<AskedOf>
  /** of one model */
  readonly askedOf: (model: string) => ReadonlyArray<AskedOf>
  /** connections that are open now */
  readonly connections: () => number
  /** closes the listener and every connection: from now on connections are refused */
  readonly refuse: () => Promise<void>
  /** listens again, on the same port */
  readonly listen: () => Promise<void>
  readonly close: () => Promise<void>
}

export interface ScriptedOptions {
  /** the answer of `GET /models` */
  readonly models: ReadonlyArray<object>
  /** every connection is answered with these bytes, for any request: no HTTP, no TLS */
  readonly garbage?: string
}

const crlf = Buffer.from("\r\n\r\n")

/** Requests on one connection, one after the other, as HTTP/1.1 has it; bodies have a Content-Length. */
class Connection {
  private rest: Buffer = Buffer.alloc(0)
  private readonly socket: Socket
  private readonly play: (asked: AskedOf, connection: Connection) => Promise<void>
  private readonly closed: Promise<void>
  private isPlaying = false

  constructor(socket: Socket, play: (asked: AskedOf, connection: Connection) => Promise<void>) {
    this.socket = socket
    this.play = play
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()))
    socket.setNoDelay(true)
    socket.on("data", (bytes) => {
      this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes])
      this.next()
    })
    // A client that resets its connection has gone, which the script learns.
    socket.on("error", () => socket.destroy())
  }

  private next(): void {
    if (this.isPlaying) return
    const end = this.rest.indexOf(crlf)
    if (end < 0) return
    const [requestLine = "", ...lines] = this.rest.toString("latin1", 0, end).split("\r\n")
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":")
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
      })
    )
    const from = end + crlf.length
    const to = from + Number(headers["content-length"] ?? 0)
    if (this.rest.length < to) return
    const body = this.rest.toString("utf8", from, to)
    this.rest = this.rest.subarray(to)
    this.isPlaying = true
    const asked = { requestLine, headers, body, model: modelOf(body), closedEarly: false, isOver: false }
    void this.answer(asked)
  }

  private async answer(asked: AskedOf): Promise<void> {
    await this.play(asked, this)
    asked.isOver = true
    this.isPlaying = false
    this.next()
  }

  /** Plays to the end, or until the client leaves. */
  async perform(steps: Iterable<Step>, asked: AskedOf): Promise<void> {
    for (const step of steps) {
      if (this.socket.destroyed) asked.closedEarly = true
      if (asked.closedEarly) return
      await this.take(step, asked)
    }
  }

  private async take(step: Step, asked: AskedOf): Promise<void> {
    const { socket } = this
    if ("send" in step) {
      if (!socket.write(step.send)) await Promise.race([this.drained(), this.closed])
    } else if ("pauseMillis" in step) {
      await Promise.race([sleep(step.pauseMillis), this.closed])
    } else if ("silence" in step) {
      await this.closed
      asked.closedEarly = true
    } else if (step.end === "reset") {
      socket.resetAndDestroy()
    } else {
      socket.end()
      await this.closed
    }
  }

  private drained(): Promise<void> {
    return new Promise((resolve) => this.socket.once("drain", () => resolve()))
  }
}

const modelOf = (body: string): string => {
  const model = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(body)?.[1]
  return model === undefined ? "" : String(JSON.parse(model))
}

export const startScriptedUpstream = async (options: ScriptedOptions): Promise<ScriptedUpstream> => {
  const scripts = new Map<string, Script>()
  const asked: Array<AskedOf> = []
  const sockets = new Set<Socket>()
  const list = answer(200, JSON.stringify({ data: options.models }))

  const play = async (request: AskedOf, connection: Connection): Promise<void> => {
    if (request.requestLine.startsWith("GET ")) return connection.perform([{ send: list }], request)
    asked.push(request)
    const script = scripts.get(request.model)
    const steps = script === undefined ? [{ send: unknownModel }] : script(request)
    await connection.perform(steps, request)
  }
  const take = (socket: Socket): void => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    const { garbage } = options
    if (garbage === undefined) return void new Connection(socket, play)
    socket.on("error", () => socket.destroy())
    socket.once("data", () => socket.end(garbage))
  }

  let port = 0
  let server: Server | undefined
  const listen = async (): Promise<void> => {
    server = createServer(take)
    server.listen(port, "127.0.0.1")
    await once(server, "listening")
    port = (server.address() as AddressInfo).port
  }
  const refuse = async (): Promise<void> => {
    const closed = server?.listening === true ? once(server, "close") : undefined
    server?.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen()
  return {
    url: `http://127.0.0.1:${port}/api/v1`,
    port,
    script: (model, script) => void scripts.set(model, script),
    asked,
    askedOf: (model) => asked.filter((_) => _.model === model),
    connections: () => sockets.size,
    refuse,
    listen,
    close: refuse
  }
}

type Headers = Readonly<Record<string, string | number>>

const head = (status: number, headers: Headers): string =>
  `HTTP/1.1 ${status} Whatever\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`

const bytesOf = (body: string | Uint8Array): Buffer =>
  typeof body === "string" ? Buffer.from(body) : Buffer.from(body)

/** A whole answer with a Content-Length. */
export const answer = (status: number, body: string | Uint8Array, headers: Headers = {}): Buffer => {
  const bytes = bytesOf(body)
  const all = { "Content-Type": "application/json", "Content-Length": bytes.length, ...headers }
  return Buffer.concat([Buffer.from(head(status, all)), bytes])
}

const unknownModel = answer(
  404,
  JSON.stringify({ error: { code: 404, message: "No script has that model" } })
)

/** The head of an event stream, whose body is chunked. */
export const streamHead = head(200, { "Content-Type": "text/event-stream", "Transfer-Encoding": "chunked" })

/** The head of an event stream, whose body ends with the connection. */
export const openEndedHead = head(200, { "Content-Type": "text/event-stream", Connection: "close" })

/** A piece of a chunked body. */
export const chunk = (bytes: string | Uint8Array): Buffer => {
  const body = bytesOf(bytes)
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")])
}

export const lastChunk = "0\r\n\r\n"
