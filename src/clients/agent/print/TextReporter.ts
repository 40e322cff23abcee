import type { PromptDone, Ready, ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { printable } from "../boundary/Printable.ts"
import type { ClientEvent, LinkState, ToolState } from "../connection/ClientEvents.ts"
import type { Reporter, Write } from "./Reporter.ts"

interface TextOutputs {
  /** the answer; as the model wrote it, or made safe for a terminal */
  readonly answer: Write
  /** progress, one line at a time */
  readonly progress: Write
  readonly isTerminal: boolean
}

const lineCharacters = 200

const oneLine = (text: string): string => {
  const line = printable(text).replaceAll(/\s+/g, " ").trim()
  return line.length > lineCharacters ? `${line.slice(0, lineCharacters)}…` : line
}

/** The subject of a call, in a few words. */
const subjectOf = (params: unknown): string => {
  if (typeof params !== "object" || params === null) return ""
  const { command, path, pattern } = params as Readonly<Record<string, unknown>>
  return [command, pattern, path].filter((part) => typeof part === "string").join(" ")
}

const secondsOf = (millis: number): string => `${(millis / 1_000).toFixed(1)} s`

/** Writes the last answer to one output, and progress to the other. */
export class TextReporter implements Reporter {
  private readonly outputs: TextOutputs
  private answer = ""

  constructor(outputs: TextOutputs) {
    this.outputs = outputs
  }

  started({ model, resumed, sessionId }: Ready): void {
    this.note(`Session ${sessionId}${resumed ? " (resumed)" : ""}, ${model.id}`)
  }

  take(event: ClientEvent): void {
    if (event.type === "link") this.link(event)
    else if (event.type === "tool") this.tool(event)
    else if (event.type === "notice") this.note(event.text)
    else this.frame(event.frame)
  }

  note(text: string): void {
    this.outputs.progress(`${oneLine(text)}\n`)
  }

  ended(): void {
    const { answer, isTerminal } = this.outputs
    const text = isTerminal ? printable(this.answer) : this.answer
    if (text !== "") answer(text.endsWith("\n") ? text : `${text}\n`)
  }

  private link(link: LinkState): void {
    if (link.state === "waiting") {
      this.note(`${link.problem}; trying again in ${secondsOf(link.retryInMillis)}`)
    } else if (link.state === "closed" && link.reason !== "bye") this.note(link.problem)
  }

  private tool(tool: ToolState): void {
    if (tool.state === "started") this.note(`> ${tool.method} ${subjectOf(tool.params)}`)
    if (tool.state !== "ended" || tool.ok) return
    this.note(`  ${tool.denied ? "refused" : "failed"}: ${tool.error?.message ?? "no reason was given"}`)
  }

  private frame(frame: ServerFrame): void {
    if (frame.type === "error") this.note(`Error: ${frame.message}`)
    else if (frame.type === "prompt.done") this.done(frame)
    else if (frame.type === "event") this.event(frame)
  }

  private event(event: ServerFrame & { readonly type: "event" }): void {
    if (event.kind === "message_end") {
      const text = event.content.flatMap((part) => (part.type === "text" ? part.text : [])).join("")
      if (event.content.some(({ type }) => type === "tool_call")) {
        if (text !== "") this.note(text)
      } else this.answer = text
    } else if (event.kind === "model_fallback")
      this.note(`${event.from} does not answer; going on with ${event.to}`)
    else if (event.kind === "retry") this.note(`${event.message}; attempt ${event.attempt}`)
    else if (event.kind === "compaction_start") this.note("The conversation is long and is summed up")
    else if (event.kind === "budget_warning") {
      this.note(`$${event.spentUsd.toFixed(4)} of $${event.budgetUsd.toFixed(4)} are spent`)
    }
  }

  private done(done: PromptDone): void {
    const calls = `${done.toolCalls} tool calls${done.toolCallsDenied > 0 ? `, ${done.toolCallsDenied} refused` : ""}`
    const price = done.coveredBySubscription ? "covered by the plan" : `$${done.costUsd.toFixed(6)}`
    const problem = done.error === undefined ? "" : `: ${done.error.message}`
    this.note(`${done.status}${problem} (${done.turns} turns, ${calls}, ${price})`)
  }
}
