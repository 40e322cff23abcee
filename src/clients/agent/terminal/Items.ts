import type { Item, MessageItem, MessagePart, NoticeItem, TerminalState, ToolItem } from "./TerminalState.ts"
import { terminalLimits } from "./TerminalState.ts"

/** Changes of the list of items, each giving a new state. */

const forget = (state: TerminalState): TerminalState => {
  if (state.items.length <= terminalLimits.items) return state
  const gone = state.items.length - terminalLimits.itemsKept
  return { ...state, items: state.items.slice(gone), forgotten: state.forgotten + gone }
}

export const append = (state: TerminalState, item: Item): TerminalState =>
  forget({ ...state, items: [...state.items, item] })

export const notice = (state: TerminalState, level: NoticeItem["level"], text: string): TerminalState =>
  append(state, { kind: "notice", level, text })

const indexOf = (state: TerminalState, kind: Item["kind"], id: string): number =>
  state.items.findLastIndex((item) => item.kind === kind && "id" in item && item.id === id)

const replace = (state: TerminalState, index: number, item: Item): TerminalState => ({
  ...state,
  items: state.items.with(index, item)
})

/** Adds a prompt, once for each id. */
export const asked = (state: TerminalState, id: string, text: string): TerminalState =>
  indexOf(state, "prompt", id) >= 0
    ? state
    : append(state, {
        kind: "prompt",
        id,
        text: bounded(text.replaceAll(attachedFile, "")),
        files: [...text.matchAll(attachedFile)].map(([, name = ""]) => name)
      })

/** Files that a prompt named stand behind it, as the model is given them. */
const attachedFile = /\n\n<file path="([^"\n]*)">\n[\s\S]*?\n<\/file>/g

export const bounded = (text: string): string =>
  text.length <= terminalLimits.textCharacters
    ? text
    : `${text.slice(0, terminalLimits.textCharacters)}\n… (longer than what is shown here)`

/** Marks messages that will not be finished: the model was asked again, or the prompt is over. */
export const leaveOpenMessages = (state: TerminalState): TerminalState =>
  state.items.some((item) => item.kind === "message" && item.progress === "open")
    ? {
        ...state,
        items: state.items.map((item) =>
          item.kind === "message" && item.progress === "open" ? { ...item, progress: "left" } : item
        )
      }
    : state

export const grow = (
  state: TerminalState,
  messageId: string,
  part: Omit<MessagePart, "text">,
  delta: string
): TerminalState => {
  const index = indexOf(state, "message", messageId)
  const item = state.items[index]
  if (item?.kind !== "message") {
    const fresh: MessageItem = {
      kind: "message",
      id: messageId,
      parts: [{ ...part, text: bounded(delta) }],
      progress: "open"
    }
    return append(leaveOpenMessages(state), fresh)
  }
  // A delta behind the end of its message can only be a repeated one.
  if (item.progress === "done") return state
  return replace(state, index, { ...item, parts: grown(item.parts, part, delta), progress: "open" })
}

const grown = (
  parts: ReadonlyArray<MessagePart>,
  part: Omit<MessagePart, "text">,
  delta: string
): ReadonlyArray<MessagePart> => {
  const at = parts.findIndex(({ index, type }) => index === part.index && type === part.type)
  const known = parts[at]
  if (known === undefined) {
    return [...parts, { ...part, text: bounded(delta) }].toSorted((a, b) => a.index - b.index)
  }
  if (known.text.length >= terminalLimits.textCharacters) return parts
  return parts.with(at, { ...known, text: bounded(known.text + delta) })
}

/** The whole message, which counts more than its pieces. */
export const finish = (
  state: TerminalState,
  messageId: string,
  parts: ReadonlyArray<MessagePart>
): TerminalState => {
  const item: MessageItem = {
    kind: "message",
    id: messageId,
    parts: parts.map((part) => ({ ...part, text: bounded(part.text) })),
    progress: "done"
  }
  const index = indexOf(state, "message", messageId)
  if (index >= 0) return replace(state, index, item)
  return parts.length === 0 ? leaveOpenMessages(state) : append(leaveOpenMessages(state), item)
}

/** Changes a tool call, which begins here where it is not known. */
export const call = (
  state: TerminalState,
  id: string,
  change: (item: ToolItem) => ToolItem
): TerminalState => {
  const index = indexOf(state, "tool", id)
  const item = state.items[index]
  return item?.kind === "tool"
    ? replace(state, index, change(item))
    : append(state, change({ ...unknownCall, id }))
}

const unknownCall: ToolItem = {
  kind: "tool",
  id: "",
  tool: "",
  args: {},
  progress: "called",
  since: 0,
  durationMillis: 0,
  error: "",
  output: "",
  local: false,
  result: undefined
}

/** Only the end is kept. */
export const printed = (item: ToolItem, text: string): ToolItem => ({
  ...item,
  output: (item.output + text).slice(-terminalLimits.outputCharacters)
})
