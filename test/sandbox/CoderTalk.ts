import type { SandboxClient } from "./SandboxClient.ts"

/** A message of a conversation, as chat completions have it. */
export interface Message {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: ReadonlyArray<WireCall>
  readonly tool_call_id?: string
}

interface WireCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
}

export const user = (content: string): Message => ({ role: "user", content })

/** The text and calls in a stream of the scripted coding model. */
export interface Spoken {
  readonly status: number
  readonly content: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<WireCall>
  /** deltas that bring a part of the arguments of a call */
  readonly argumentDeltas: number
  /** null: the stream ended without */
  readonly finishReason: string | null
  readonly completionTokens: number
  readonly raw: string
}

interface Delta {
  readonly content?: string | null
  readonly reasoning?: string
  readonly tool_calls?: ReadonlyArray<{
    readonly index: number
    readonly id?: string
    readonly function: { readonly name?: string; readonly arguments: string }
  }>
}

const chunksOf = (raw: string) =>
  raw
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)))

const spokenIn = (status: number, raw: string): Spoken => {
  const calls: Array<{ id: string; name: string; text: string }> = []
  const said = { content: "", reasoning: "", argumentDeltas: 0, finishReason: null, completionTokens: 0 }
  for (const { choices, usage } of chunksOf(raw)) {
    const { delta = {}, finish_reason: reason = null } = choices[0] ?? {}
    const { content, reasoning, tool_calls: parts = [] }: Delta = delta
    said.content += content ?? ""
    said.reasoning += reasoning ?? ""
    said.finishReason = reason ?? said.finishReason
    said.completionTokens = usage?.completion_tokens ?? said.completionTokens
    for (const part of parts) {
      said.argumentDeltas++
      const call = (calls[part.index] ??= { id: part.id ?? "", name: part.function.name ?? "", text: "" })
      call.text += part.function.arguments
    }
  }
  const wired = calls.map(
    ({ id, name, text }) => ({ id, type: "function", function: { name, arguments: text } }) as const
  )
  return { ...said, status, calls: wired, raw }
}

const names = ["read", "write", "edit", "ls", "find", "grep", "bash"]
export const tools = names.map((name) => ({ type: "function", function: { name, parameters: {} } }))

/** One message of the model, streamed at once. */
export const speak = async (
  sandbox: SandboxClient,
  messages: ReadonlyArray<Message>,
  more: object = {}
): Promise<Spoken> => {
  const asked = {
    model: "sandbox/coder",
    messages,
    tools,
    stream: true,
    sandbox: { word_millis: 0 },
    ...more
  }
  const response = await sandbox.post("/chat/completions", asked)
  return spokenIn(response.status, await response.text())
}

export const asMessage = ({ calls, content }: Spoken): Message => ({
  role: "assistant",
  content: content === "" ? null : content,
  ...(calls.length === 0 ? {} : { tool_calls: calls })
})

/** A call as a plan would have it: the tool's name and its arguments. */
export const shown = ({ calls }: Spoken): ReadonlyArray<readonly [string, unknown]> =>
  calls.map(({ function: { arguments: text, name } }) => [name, JSON.parse(text)] as const)

/** The answer of a tool. */
export type Tool = (name: string, args: unknown) => string

/** Asks until there is a message without calls; every call is answered. */
export const converse = async (
  sandbox: SandboxClient,
  begun: ReadonlyArray<Message>,
  tool: Tool = () => "fine"
): Promise<{ readonly spoken: ReadonlyArray<Spoken>; readonly messages: ReadonlyArray<Message> }> => {
  const messages = [...begun]
  const spoken: Array<Spoken> = []
  for (;;) {
    const next = await speak(sandbox, messages)
    spoken.push(next)
    messages.push(asMessage(next))
    if (next.calls.length === 0) return { spoken, messages }
    for (const { function: called, id } of next.calls) {
      const args: unknown = JSON.parse(called.arguments)
      messages.push({ role: "tool", tool_call_id: id, content: tool(called.name, args) })
    }
  }
}
