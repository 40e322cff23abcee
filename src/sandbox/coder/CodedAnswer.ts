import {
  type Answer,
  argumentPiecesOf,
  cutAfter,
  mostOf,
  piecesIn,
  piecesOf,
  stoppedAt,
  written
} from "../Answer.ts"
import type { ChatMessage, ChatRequest } from "../ChatRequest.ts"
import type { SandboxModel } from "../SandboxModel.ts"
import type { Refusal } from "../Wire.ts"
import type { Faults } from "./Faults.ts"
import { notesText } from "./Notes.ts"
import { noTurn, type Plan, type Said, type Turn } from "./Plan.ts"
import { notesOf, type Outcome, type Progress, progressOf } from "./Progress.ts"
import { transcriptIn } from "./Transcript.ts"
import { faultyText, lookingAround, welcoming } from "./Welcome.ts"

const shownMax = 2_000

const saying = (text: string): Turn => ({ ...noTurn, said: [{ kind: "say", text }] })

const mentionsSummary = ({ text }: ChatMessage): boolean => /\bsummar(?:y|i[sz]e)/iu.test(text)

/**
 * The conversation that is to be summed up, as agents ask for it whose context is full: without tools, in the system's
 * words or in a last message, which may hold the conversation itself. Undefined without such a request.
 */
const toSumUp = ({ messages }: ChatRequest): ReadonlyArray<ChatMessage> | undefined => {
  const last = messages.at(-1)
  if (last?.role === "user" && mentionsSummary(last)) return transcriptIn(last.text) ?? messages.slice(0, -1)
  return messages.some((message) => message.role === "system" && mentionsSummary(message))
    ? messages
    : undefined
}

const stopped = ({ text, tool }: Outcome): Said => ({
  kind: "say",
  text: `I stopped, as the plan wants on an error: ${tool} gave ${JSON.stringify(text.slice(0, shownMax))}.`
})

const defaultEnd = (plan: Plan, outcomes: ReadonlyArray<Outcome>): Said => {
  const calls = plan.turns.reduce((sum, turn) => sum + turn.calls.length, 0)
  const failed = outcomes.filter(({ hasFailed }) => hasFailed).length
  const failures = failed === 0 ? "" : ` ${failed} of them failed.`
  return { kind: "say", text: `The plan is done: ${calls} ${calls === 1 ? "call" : "calls"}.${failures}` }
}

const acknowledged = (text: string): Said => ({
  kind: "say",
  text: `You also said: ${JSON.stringify(text)}. I heard it; my plan has no step for it.`
})

const nextOf = ({ heard, outcomes, turnsDone, work }: Progress, hasTools: boolean): Turn => {
  if (work.kind === "faulty") return saying(faultyText(work.line))
  if (work.kind === "words") return hasTools ? lookingAround(work, turnsDone, outcomes) : welcoming(work.text)
  const { plan } = work
  const turn = plan.turns[turnsDone]
  if (turn === undefined) return saying("The plan is done, and there is no other.")
  const failed = plan.stopsOnError ? outcomes.find(({ hasFailed }) => hasFailed) : undefined
  const answers = heard.map(acknowledged)
  if (failed !== undefined)
    return { ...noTurn, said: [stopped(failed), ...answers], pieceMillis: turn.pieceMillis }
  if (turn.calls.length > 0) return hasTools ? turn : toolless(turn)
  return { ...turn, said: [...(turn.said.length > 0 ? turn.said : [defaultEnd(plan, outcomes)]), ...answers] }
}

/** Without tools it can only describe its steps. */
const toolless = (turn: Turn): Turn => {
  const calls = turn.calls.map(({ argumentsText, name }) => `${name} ${argumentsText}`).join(", then ")
  return saying(`My next step is ${calls}, but this request brings no tools.`)
}

const textOf = (said: ReadonlyArray<Said>, outcomes: ReadonlyArray<Outcome>): string =>
  said
    .map((part) => {
      if (part.kind === "say") return part.text
      if (part.kind === "words") return written(part.count)
      return outcomes.at(-1)?.text.slice(0, shownMax) ?? "There is no result to show."
    })
    .join("\n")

const answerOfTurn = (turn: Turn, request: ChatRequest, progress: Progress): Answer => {
  const { callsMade, outcomes } = progress
  const calls = turn.calls.map(({ argumentsText, name }, index) => ({
    id: `call_${callsMade + index + 1}`,
    name,
    argumentPieces: argumentPiecesOf(argumentsText)
  }))
  return {
    reasoning: request.wantsReasoning ? piecesOf(turn.thoughts.join("\n")) : [],
    content: piecesOf(stoppedAt(textOf(turn.said, outcomes), request.stop)),
    calls,
    finishReason: calls.length > 0 ? "tool_calls" : "stop",
    pieceMillis: turn.pieceMillis
  }
}

/** A message is cut in the middle of its calls if it has some. */
const middleOf = (answer: Answer): number => {
  const before = answer.calls.length > 0 ? answer.reasoning.length + answer.content.length : 0
  return Math.max(1, before + Math.floor((piecesIn(answer) - before) / 2))
}

const withFault = (turn: Turn, answer: Answer, request: ChatRequest, faults: Faults): Answer | Refusal => {
  const { fault } = turn
  if (fault === undefined) return answer
  if (fault.kind === "length") return cutAfter(answer, middleOf(answer))
  if (!faults.isDue(request.messages, fault.times)) return answer
  if (fault.kind === "break") return { ...answer, breaksAfter: middleOf(answer) }
  return { status: fault.status, message: `The plan wants this call to fail with ${fault.status}` }
}

/**
 * The next message of the scripted coding model, a function of the request alone but for faults that a plan wants so
 * many times. Its place in the plan is counted in the conversation, so a repeated call has the same answer.
 */
export const codedAnswer = (model: SandboxModel, request: ChatRequest, faults: Faults): Answer | Refusal => {
  const most = mostOf(model, request)
  const hasTools = request.mayCallTools && request.tools.length > 0
  const summedUp = hasTools ? undefined : toSumUp(request)
  if (summedUp !== undefined) {
    const text = notesText(notesOf(progressOf(summedUp)))
    const answer: Answer = { reasoning: [], content: piecesOf(text), calls: [], finishReason: "stop" }
    return cutAfter(answer, most)
  }
  const progress = progressOf(request.messages)
  const turn = nextOf(progress, hasTools)
  const made = withFault(turn, answerOfTurn(turn, request, progress), request, faults)
  return "status" in made ? made : cutAfter(made, most)
}
