import { thinkingLevels, type ThinkingLevel } from "#schemas/agents/ClientFrame.ts"

/** The commands of the prompt line. */
export const commands = [
  { name: "model", argument: "[id]", says: "choose the model, or name it" },
  { name: "thinking", argument: "[level]", says: "how much the model thinks" },
  { name: "new", argument: "", says: "begin a new session" },
  { name: "resume", argument: "", says: "go on with an earlier session of this workspace" },
  {
    name: "compact",
    argument: "[instructions]",
    says: "make the context smaller: a summary takes its place"
  },
  { name: "later", argument: "text", says: "ask this when the work is done (also Alt-Enter)" },
  { name: "session", argument: "", says: "this session: its id, cost and tokens" },
  { name: "sessions", argument: "", says: "your latest sessions" },
  {
    name: "permissions",
    argument: "[revoke …]",
    says: "what you allowed; take back one: revoke ID, or all: revoke all"
  },
  { name: "help", argument: "", says: "keys and commands" },
  { name: "quit", argument: "", says: "leave; the session can be resumed" }
] as const

type CommandName = (typeof commands)[number]["name"]

export type Command =
  | { readonly kind: "prompt"; readonly text: string }
  | { readonly kind: "command"; readonly name: CommandName; readonly argument: string }
  | { readonly kind: "unknown"; readonly name: string }

/** `/etc/hosts is wrong` is a prompt: only one word behind one slash is a command. */
export const commandOf = (text: string): Command => {
  const match = /^\/([A-Za-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim())
  if (match === null) return { kind: "prompt", text: text.trim() }
  const [, name = "", argument = ""] = match
  const known = commands.find((command) => command.name === name.toLowerCase())
  return known === undefined
    ? { kind: "unknown", name }
    : { kind: "command", name: known.name, argument: argument.trim() }
}

export const isThinkingLevel = (text: string): text is ThinkingLevel =>
  thinkingLevels.some((level) => level === text)

export const helpText = [
  ...commands.map(({ argument, name, says }) => `/${`${name} ${argument}`.trim().padEnd(22)} ${says}`),
  "",
  "Enter                   send; while the agent works: steer it",
  "Alt-Enter               send when the work is done",
  "Shift-Enter or \\ Enter  new line",
  "Esc                     stop the agent; what waited comes back to the editor",
  "Ctrl-C                  empty the editor; twice: leave",
  "Ctrl-T / Ctrl-O         show all thoughts / all of the tool calls",
  "↑ ↓                     earlier prompts",
  "@name                   a file of the workspace",
  "",
  "A question: y once, n or Esc no. s, r, a and ← → choose what lasts longer: this session,",
  "a rule (npm test *), always here; Enter confirms what is shown. No key counts that",
  "comes with typing, and no letter while the editor holds text: Tab, then ← → and Enter."
].join("\n")
