import type { Ready } from "#schemas/agents/ServerFrame.ts"
import type { ClientEvent } from "../connection/ClientEvents.ts"
import type { Reporter, Write } from "./Reporter.ts"

interface SessionLine {
  readonly url: string
  readonly workspace: { readonly root: string; readonly name: string }
  readonly client: { readonly version: string }
}

/**
 * One JSON object a line: first `{"type":"session",…}`, then every frame as the server sent it, and between them
 * `{"type":"link",…}`, `{"type":"tool",…}` and `{"type":"notice",…}`.
 */
export class JsonReporter implements Reporter {
  private readonly write: Write
  private readonly session: SessionLine
  /** the events before the session is known */
  private early: Array<ClientEvent> | undefined = []

  constructor(write: Write, session: SessionLine) {
    this.write = write
    this.session = session
  }

  started(ready: Ready): void {
    const { model, resumed, sessionId, thinkingLevel } = ready
    this.line({ type: "session", sessionId, resumed, model, thinkingLevel, ...this.session })
    this.flush()
  }

  take(event: ClientEvent): void {
    if (this.early === undefined) this.line(event.type === "frame" ? event.frame : event)
    else this.early.push(event)
  }

  note(text: string): void {
    this.line({ type: "note", text })
  }

  ended(): void {
    this.flush()
  }

  private flush(): void {
    const { early = [] } = this
    this.early = undefined
    for (const event of early) this.take(event)
  }

  private line(value: object): void {
    this.write(`${JSON.stringify(value)}\n`)
  }
}
