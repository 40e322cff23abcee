import type { AgentModel } from "#schemas/agents/ServerFrame.ts"
import type { Client } from "../connection/Client.ts"
import type { AgentSession } from "../connection/ServerRest.ts"
import type { Command } from "./Command.ts"
import { helpText, isThinkingLevel } from "./Command.ts"
import { amount, seconds, tokens } from "./Figures.ts"
import type { Choice } from "./Picker.ts"
import { safeLine } from "./SafeText.ts"
import { spent } from "./StatusLines.ts"
import type { TerminalState } from "./TerminalState.ts"
import { changePermissions, type Permissions } from "./PermissionText.ts"
import { thinkingLevels } from "#schemas/agents/ClientFrame.ts"

interface CommandSurroundings {
  readonly client: Client
  readonly state: () => TerminalState
  readonly models: () => Promise<ReadonlyArray<AgentModel>>
  readonly workspaceRoot: string
  readonly permissions: Permissions
  readonly now: () => number
  readonly say: (text: string) => void
  /** undefined: nothing was chosen */
  readonly pick: (title: string, choices: ReadonlyArray<Choice>) => Promise<string | undefined>
  /** asks this when the work is done */
  readonly later: (text: string) => void
  /** the server works on something with this id */
  readonly working: (id: string) => void
  readonly quit: () => void
}

type Named = Extract<Command, { kind: "command" }>

/** Does what a command asks for. Rejects with what went wrong. */
export const runSlashCommand = async (
  { argument, name }: Named,
  around: CommandSurroundings
): Promise<void> => {
  switch (name) {
    case "help":
      return around.say(helpText)
    case "quit":
      return around.quit()
    case "later":
      return argument === "" ? around.say("Write what to ask: /later text") : around.later(argument)
    case "compact":
      return around.working(around.client.compact(argument === "" ? undefined : argument))
    case "new":
      await around.client.newSession()
      return
    case "model":
      return chooseModel(argument, around)
    case "thinking":
      return chooseThinking(argument, around)
    case "resume":
      return resume(around)
    case "permissions":
      return around.say(changePermissions(argument, around.permissions))
    case "session":
      return around.say(describeSession(around.state()))
    case "sessions":
      return around.say(listSessions(await around.client.sessions(), around.now()))
    default:
      return undefined
  }
}

const chooseModel = async (named: string, around: CommandSurroundings): Promise<void> => {
  const { client, models, pick, say, state } = around
  const model = named === "" ? await pick("Model", (await models()).map(modelChoice)) : named
  if (model === undefined || model === state().session?.model.id) return
  const ready = await client.reopen({ model })
  say(`Model: ${ready.model.id}`)
}

const modelChoice = ({ context_length, id, name }: AgentModel): Choice => ({
  value: id,
  label: safeLine(id),
  description: `${tokens(context_length)} · ${safeLine(name)}`
})

const chooseThinking = async (named: string, { client, pick, say }: CommandSurroundings): Promise<void> => {
  const level =
    named === ""
      ? await pick(
          "How much the model thinks",
          thinkingLevels.map((level) => ({ value: level, label: level }))
        )
      : named
  if (level === undefined) return
  if (!isThinkingLevel(level))
    return say(`There is no level ${safeLine(level)}: ${thinkingLevels.join(", ")}`)
  const ready = await client.reopen({ thinkingLevel: level })
  say(`Thinking: ${ready.thinkingLevel}`)
}

const resume = async (around: CommandSurroundings): Promise<void> => {
  const { client, now, pick, say, state, workspaceRoot } = around
  const current = state().session?.id
  const sessions = (await client.sessions()).filter(
    ({ id, prompts, workspace }) => workspace.root === workspaceRoot && id !== current && prompts > 0
  )
  if (sessions.length === 0) return say("There is no other session of this workspace.")
  const id = await pick(
    "Go on with",
    sessions.map((session) => ({
      value: session.id,
      label: `${ago(session.last_seen_at, now())} · ${counted(session.prompts, "prompt")}`,
      description: `${safeLine(session.model)} · ${session.status} · ${safeLine(session.id)}`
    }))
  )
  if (id !== undefined) await client.resume(id)
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

const ago = (instant: string, now: number): string => {
  const millis = now - Date.parse(instant)
  if (Number.isNaN(millis)) return "some time ago"
  if (millis < 60_000) return "just now"
  const days = Math.floor(millis / 86_400_000)
  return days >= 2
    ? `${days} days ago`
    : `${seconds(Math.floor(millis / 60_000) * 60_000).replace(/ 0 (s|min)$/, "")} ago`
}

const listSessions = (sessions: ReadonlyArray<AgentSession>, now: number): string =>
  sessions.length === 0
    ? "There are no sessions."
    : sessions
        .map(({ id, last_seen_at, prompts, status, workspace }) =>
          [id, ago(last_seen_at, now), status, counted(prompts, "prompt"), workspace.name]
            .map(safeLine)
            .join(" · ")
        )
        .join("\n")

/** The text of `/session`. */
const describeSession = (state: TerminalState): string => {
  const { contextTokens, session, totalTokens } = state
  if (session === undefined) return "There is no session: the server has not answered."
  const { billing, id, model, thinkingLevel } = session
  return [
    `session   ${id}`,
    `model     ${model.id}, thinking ${thinkingLevel}`,
    `context   ${tokens(contextTokens)} of ${tokens(model.context_length)} tokens; ${tokens(totalTokens)} in all calls`,
    `cost      ${amount(spent(state))}${billing.mode === "subscription" ? `, beside what the plan ${billing.plan ?? ""} covers` : ""}`,
    `resume    signalbox-agent --resume ${id}`
  ].join("\n")
}
