import type { UwsResponse, UwsWebSocket } from "#src/front/uws/Addon.ts"
import { bodyOf, serveForked } from "#bench/harness/ForkedServer.ts"
import { modelId, pieceOf, type Script } from "./Script.ts"

/**
 * The upstream of the agents that are measured, and at `/ws` the raw limit: uWebSockets.js alone, which answers a hello,
 * and a prompt with the pieces that the upstream would send, without anything between. It follows the script of the
 * last prompt, on a clock, and stamps every piece as it leaves.
 */

/** The receiver of the pieces of a text. */
interface PieceSink {
  piece(text: string): void
  end(): void
}

/** One text: its pieces when they are due. A timer that is late catches up. */
class PieceClock {
  private readonly script: Script
  private readonly sink: PieceSink
  private readonly start = performance.now()
  private sent = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(script: Script, sink: PieceSink) {
    this.script = script
    this.sink = sink
    this.advance()
  }

  stop(): void {
    clearTimeout(this.timer)
  }

  private advance(): void {
    const { everyMillis, pieces } = this.script
    while (this.sent < pieces) {
      const dueIn = this.start + this.sent * everyMillis - performance.now()
      if (dueIn > 0) {
        this.timer = setTimeout(() => this.advance(), dueIn)
        return
      }
      this.sink.piece(pieceOf(this.sent++))
    }
    this.sink.end()
  }
}

interface AskedMessage {
  readonly role: string
  readonly content: string | ReadonlyArray<{ readonly type: string; readonly text?: string }>
}

const textOf = ({ content }: AskedMessage): string =>
  typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("")

/** The script of the last prompt, and whether its calls have their results. */
const scriptOf = (
  messages: ReadonlyArray<AskedMessage>
): { readonly script: Script; readonly isCalled: boolean } => {
  const at = messages.findLastIndex(({ role }) => role === "user")
  const last = messages[at]
  if (last === undefined) throw new Error("a call without a prompt")
  return {
    script: JSON.parse(textOf(last)),
    isCalled: messages.slice(at).some(({ role }) => role === "tool")
  }
}

const event = (fields: object): string =>
  `data: ${JSON.stringify({ id: "gen-bench", object: "chat.completion.chunk", created: 1_767_225_600, model: modelId, ...fields })}\n\n`

const choice = (delta: object, reason: string | null): object => ({
  choices: [{ index: 0, delta, finish_reason: reason }]
})

const ending = (reason: string): string =>
  event(choice({}, reason)) +
  event({ choices: [], usage: { prompt_tokens: 200, completion_tokens: 50, total_tokens: 250 } }) +
  "data: [DONE]\n\n"

let calls = 0

const callsOf = ({ calls: count = 0, tool = "read" }: Script): object => ({
  role: "assistant",
  tool_calls: Array.from({ length: count }, (_, index) => ({
    index,
    id: `call_${++calls}`,
    type: "function",
    function: {
      name: tool,
      arguments: JSON.stringify(tool === "read" ? { path: "notes.txt" } : { command: "make" })
    }
  }))
})

const complete = (response: UwsResponse): void => {
  let clock: PieceClock | undefined
  let isGone = false
  response.onAborted(() => {
    isGone = true
    clock?.stop()
  })
  bodyOf(response, (body) => {
    if (isGone) return
    const asked: { readonly messages: ReadonlyArray<AskedMessage> } = JSON.parse(body.toString("utf8"))
    const { isCalled, script } = scriptOf(asked.messages)
    const send = (text: string): void => {
      if (!isGone) response.cork(() => void response.write(Buffer.from(text)))
    }
    response.cork(() => response.writeHeader("Content-Type", "text/event-stream"))
    const end = (reason: string): void => {
      send(ending(reason))
      if (!isGone) response.cork(() => response.end())
      isGone = true
    }
    if (script.calls !== undefined && !isCalled) {
      send(event(choice(callsOf(script), null)))
      end("tool_calls")
    } else {
      clock = new PieceClock(script, {
        piece: (text) => send(event(choice({ role: "assistant", content: text }, null))),
        end: () => end("stop")
      })
    }
  })
}

const models = [
  {
    id: modelId,
    canonical_slug: modelId,
    name: modelId,
    created: 1_767_225_600,
    description: "follows the script of the prompt",
    context_length: 1_048_576,
    architecture: {
      modality: "text->text",
      input_modalities: ["text"],
      output_modalities: ["text"],
      tokenizer: "Other",
      instruct_type: null
    },
    pricing: { prompt: "0.000003", completion: "0.000015" },
    top_provider: { context_length: 1_048_576, max_completion_tokens: 65_536, is_moderated: false },
    per_request_limits: null,
    supported_parameters: ["max_tokens", "temperature", "tools", "tool_choice"]
  }
]

/** A socket of the raw limit. */
class RawSession {
  private readonly socket: UwsWebSocket
  private seq = 0
  private clock: PieceClock | undefined

  constructor(socket: UwsWebSocket) {
    this.socket = socket
  }

  /** Speaks as much of protocol 1 as the load asks for. */
  receive(text: string): void {
    const frame: { readonly type: string; readonly id: string; readonly text: string } = JSON.parse(text)
    if (frame.type === "hello") this.socket.send(ready, false)
    if (frame.type !== "prompt") return
    let whole = ""
    this.clock = new PieceClock(JSON.parse(frame.text), {
      piece: (delta) => {
        whole += delta
        this.say({ type: "event", kind: "text_delta", promptId: frame.id, delta })
      },
      end: () => {
        this.say({ type: "event", kind: "message_end", content: [{ type: "text", text: whole }] })
        this.say({ type: "prompt.done", id: frame.id, status: "completed" })
      }
    })
  }

  close(): void {
    this.clock?.stop()
  }

  private say(frame: object): void {
    this.socket.send(JSON.stringify({ ...frame, seq: ++this.seq }), false)
  }
}

const ready = JSON.stringify({ type: "ready", sessionId: "raw", resumed: false, seq: 0 })

const sessions = new WeakMap<object, RawSession>()
const sessionOf = (socket: UwsWebSocket): RawSession | undefined => sessions.get(socket.getUserData())

if (process.argv[1] === import.meta.filename) {
  serveForked((app) => {
    app.post("/api/v1/chat/completions", complete)
    app.get(
      "/api/v1/models",
      (response) =>
        void response.writeHeader("Content-Type", "application/json").end(JSON.stringify({ data: models }))
    )
    app.ws("/ws", {
      maxPayloadLength: 2 * 1024 * 1024,
      maxBackpressure: 0,
      idleTimeout: 120,
      sendPingsAutomatically: true,
      compression: 0,
      upgrade: (response, request, context) =>
        response.upgrade({}, request.getHeader("sec-websocket-key"), "", "", context),
      open: (socket) => void sessions.set(socket.getUserData(), new RawSession(socket)),
      message: (socket, message) => sessionOf(socket)?.receive(Buffer.from(message).toString("utf8")),
      drain: () => undefined,
      close: (socket) => sessionOf(socket)?.close()
    })
  })
}
