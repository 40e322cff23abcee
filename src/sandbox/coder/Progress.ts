import type { ChatMessage } from "../ChatRequest.ts"
import { type Notes, readNotes } from "./Notes.ts"
import { type Plan, readPlan } from "./Plan.ts"

export interface Outcome {
  /** the tool's name */
  readonly tool: string
  readonly text: string
  readonly hasFailed: boolean
}

/** The model's work. */
export type Work =
  | { readonly kind: "plan"; readonly plan: Plan }
  /** the newest message begins like a plan and has a line that is no step */
  | { readonly kind: "faulty"; readonly line: string }
  /** no plan, but words; `isFirst`: there was nothing before them */
  | { readonly kind: "words"; readonly text: string; readonly isFirst: boolean }

/** The model's progress: all that it knows, read from the conversation every time. */
export interface Progress {
  readonly work: Work
  /** of the work */
  readonly turnsDone: number
  /** in the whole conversation */
  readonly callsMade: number
  /** the person's words since the work began */
  readonly heard: ReadonlyArray<string>
  /** of the work's calls, in order */
  readonly outcomes: ReadonlyArray<Outcome>
}

/** Results of tools that report a failure. */
const failure = /^\s*(?:\[?error\b|\{\s*"error")/iu
const failedCommand = /(?:^|\n)\[?(?:exit code [1-9]\d*|ended by \w+)\]?\s*$/u

const outcomeOf = (tool: string, text: string): Outcome => ({
  tool,
  text,
  hasFailed: failure.test(text) || (tool === "bash" && failedCommand.test(text))
})

/** Characters that are kept of a person's words beside a plan. */
const heardMax = 500

/** Reads a conversation from its beginning. */
class Reader {
  work: Work = { kind: "words", text: "", isFirst: true }
  turnsDone = 0
  callsMade = 0
  heard: Array<string> = []
  outcomes: Array<Outcome> = []
  private hasBegun = false
  private readonly toolNames = new Map<string, string>()

  read(message: ChatMessage): void {
    const notes = message.role === "tool" ? undefined : readNotes(message.text)
    if (notes !== undefined) return this.resume(notes)
    if (message.role === "user") return this.hear(message.text)
    if (message.role === "assistant") return this.follow(message)
    if (message.role !== "tool") return
    const tool = this.toolNames.get(message.answers) ?? ""
    this.outcomes.push(outcomeOf(tool, message.text))
  }

  /** A plan whose last message was given is done. */
  private get isUnderWay(): boolean {
    return this.work.kind === "plan" && this.turnsDone < this.work.plan.turns.length
  }

  private resume({ callsMade, heard, plan, turnsDone }: Notes): void {
    this.begin(plan === undefined ? { kind: "words", text: "", isFirst: false } : { kind: "plan", plan })
    this.turnsDone = turnsDone
    this.callsMade = callsMade
    this.heard = [...heard]
  }

  private begin(work: Work): void {
    this.work = work
    this.turnsDone = 0
    this.heard = []
    this.outcomes = []
    this.hasBegun = true
  }

  private hear(text: string): void {
    const reading = readPlan(text)
    if (reading.kind === "plan") return this.begin(reading)
    if (this.isUnderWay) return void this.heard.push(text.slice(0, heardMax))
    if (reading.kind === "faulty") this.begin(reading)
    else this.begin({ kind: "words", text, isFirst: !this.hasBegun })
  }

  private follow({ calls }: ChatMessage): void {
    for (const { id, name } of calls) this.toolNames.set(id, name)
    this.callsMade += calls.length
    // A message without calls that comes before the last one of its plan was broken off.
    if (calls.length > 0 || (this.work.kind === "plan" && this.turnsDone === this.work.plan.turns.length - 1))
      this.turnsDone++
  }
}

export const progressOf = (messages: ReadonlyArray<ChatMessage>): Progress => {
  const reader = new Reader()
  for (const message of messages) reader.read(message)
  return reader
}

export const notesOf = ({ callsMade, heard, turnsDone, work }: Progress): Notes => {
  const isUnderWay = work.kind === "plan" && turnsDone < work.plan.turns.length
  return {
    plan: isUnderWay ? work.plan : undefined,
    turnsDone: isUnderWay ? turnsDone : 0,
    callsMade,
    heard: isUnderWay ? heard : []
  }
}
