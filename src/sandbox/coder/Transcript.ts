import type { ChatMessage } from "../ChatRequest.ts"
import { isJsonObject } from "../SandboxModel.ts"

/** A conversation that was written down in one message, as the agents of Signalbox do for a summary of it. */

const begin = "<conversation>\n"
const end = "\n</conversation>"

/** The beginning of a message: its author, after a blank line. Text that merely looks like it is taken for it. */
const turns = /\n\n(?=(?:user|assistant|tool): )/u

const callsIn = (json: string): ChatMessage["calls"] => {
  try {
    const calls: unknown = JSON.parse(json)
    return Array.isArray(calls)
      ? calls.map((call) => {
          const made = isJsonObject(call) ? call["function"] : undefined
          return { id: "", name: isJsonObject(made) ? String(made["name"]) : "", argumentsText: "" }
        })
      : []
  } catch {
    return []
  }
}

const messageOf = (turn: string): ChatMessage => {
  const [, role = "system", text = turn] = /^(user|assistant|tool): (.*)$/su.exec(turn) ?? []
  const calls = role === "assistant" ? text.lastIndexOf("\ncalls: ") : -1
  return {
    role,
    text: calls < 0 ? text : text.slice(0, calls),
    images: [],
    calls: calls < 0 ? [] : callsIn(text.slice(calls + "\ncalls: ".length)),
    answers: ""
  }
}

/** Undefined if a text holds none. */
export const transcriptIn = (text: string): ReadonlyArray<ChatMessage> | undefined => {
  const from = text.indexOf(begin)
  const to = text.lastIndexOf(end)
  return from < 0 || to < from
    ? undefined
    : text
        .slice(from + begin.length, to)
        .split(turns)
        .map(messageOf)
}
