import { isKeyRelease, matchesKey, type Terminal } from "@earendil-works/pi-tui"
import type { AgentModel } from "#schemas/agents/ServerFrame.ts"
import type { Client } from "../connection/Client.ts"
import type { Attached } from "../prompt/AttachedFiles.ts"
import { ApprovalDesk } from "./ApprovalDesk.ts"
import { ApprovalDialog } from "./ApprovalDialog.ts"
import { commandOf } from "./Command.ts"
import { runSlashCommand } from "./SlashCommands.ts"
import { Completion } from "./Completion.ts"
import type { Permissions } from "./PermissionText.ts"
import { type Choice, Picker } from "./Picker.ts"
import type { PromptHistory } from "./PromptHistory.ts"
import { reduce, type TerminalInput } from "./Reducer.ts"
import { safeText } from "./SafeText.ts"
import { Screen } from "./Screen.ts"
import { emptyState, type TerminalState } from "./TerminalState.ts"
import type { Theme } from "./Theme.ts"

/** Twice the same key within this long leaves. */
const twiceMillis = 1_000

interface AgentTerminalOptions {
  readonly client: Client
  readonly terminal: Terminal
  readonly theme: Theme
  readonly heading: string
  readonly logDirectory: string
  readonly workspace: { readonly root: string; readonly name: string }
  readonly history: PromptHistory
  readonly permissions: Permissions
  readonly models: () => Promise<ReadonlyArray<AgentModel>>
  readonly files: () => Promise<ReadonlyArray<string>>
  readonly attach: (text: string) => Promise<Attached>
  readonly now: () => number
  /** Runs something so many milliseconds later; gives how to call it off. Absent: by the clock of the system */
  readonly later?: (millis: number, run: () => void) => () => void
  /** the user leaves */
  readonly left: () => void
  /** ctrl+z */
  readonly suspend: () => void
}

/** Joins the client, the session's state, the screen and the keys. */
export class AgentTerminal {
  readonly screen: Screen
  readonly #options: AgentTerminalOptions
  readonly #desk: ApprovalDesk
  #state: TerminalState = emptyState
  #interruptedAt = -Infinity
  #unsubscribe: () => void = () => undefined

  constructor(options: AgentTerminalOptions) {
    this.#options = options
    const { heading, logDirectory, now, terminal, theme, workspace } = options
    this.screen = new Screen({
      terminal,
      theme,
      heading,
      logDirectory,
      workspace: workspace.name,
      now,
      state: () => this.#state
    })
    this.#desk = new ApprovalDesk((callId, waits) => {
      this.#take({ type: "approval", callId, waits })
      this.#showApproval()
    })
  }

  get state(): TerminalState {
    return this.#state
  }

  start(): void {
    const { client, files, history, models, now, permissions } = this.#options
    permissions.tellProblems((problem) => this.#say("warning", problem))
    this.#unsubscribe = client.events.subscribe((event) => this.#take(event))
    client.answerApprovals((ask, signal) => this.#desk.ask(ask, signal))
    const { editor } = this.screen
    for (const entry of history.load()) editor.addToHistory(safeText(entry))
    editor.setAutocompleteProvider(
      new Completion({ files, models: async () => (await models()).map(({ id }) => id) }, now)
    )
    editor.onSubmit = (text) => this.submit(text, "steer")
    this.screen.start((data) => this.#key(data))
  }

  stop(): void {
    this.#unsubscribe()
    this.#desk.close()
    this.screen.stop()
  }

  /** `mode`: the kind of message for an agent already at work. */
  submit(text: string, mode: "steer" | "follow_up"): void {
    if (text.trim() === "") return
    this.#options.history.add(text)
    this.screen.editor.addToHistory(text)
    const command = commandOf(text)
    if (command.kind === "prompt") return this.#ask(command.text, mode)
    if (command.kind === "unknown")
      return this.#say("warning", `There is no command /${command.name}; /help lists them`)
    runSlashCommand(command, {
      ...this.#options,
      workspaceRoot: this.#options.workspace.root,
      state: () => this.#state,
      say: (said) => this.#say("info", said),
      pick: (title, choices) => this.#pick(title, choices),
      later: (later) => this.#ask(later, "follow_up"),
      working: (id) => this.#take({ type: "working", id }),
      quit: this.#options.left
    }).catch((error: unknown) => this.#failed(error))
  }

  #take(input: TerminalInput): void {
    this.#state = reduce(this.#state, input, this.#options.now())
    this.screen.redraw()
  }

  #say(level: "info" | "warning" | "error", text: string): void {
    this.#take({ type: "notice", level, text })
  }

  #failed(error: unknown): void {
    this.#say("error", error instanceof Error ? error.message : String(error))
  }

  #ask(text: string, mode: "steer" | "follow_up"): void {
    // Files are read and pictures uploaded first; a text without a file mention goes out at once.
    if (!text.includes("@")) return this.#send({ text, images: [], problems: [] }, text, mode)
    this.#options
      .attach(text)
      .then((attached) => this.#send(attached, text, mode))
      .catch((error: unknown) => this.#unsent(text, error))
  }

  #send({ images, problems, text }: Attached, typed: string, mode: "steer" | "follow_up"): void {
    const { client } = this.#options
    for (const problem of problems) this.#say("warning", problem)
    try {
      if (this.#state.active === undefined) {
        this.#take({ type: "asked", id: client.prompt(text, images), text })
        return
      }
      if (images.length > 0) this.#say("warning", "Pictures can only go with a prompt: these were left out")
      this.#take({ type: "queued", id: client.steer(text, mode), text: typed, mode })
    } catch (error) {
      this.#unsent(typed, error)
    }
  }

  /** A message that could not be sent goes back into the editor, shortened at worst. */
  #unsent(text: string, error: unknown): void {
    this.screen.editor.setText(text)
    this.#failed(error)
  }

  #pick(title: string, choices: ReadonlyArray<Choice>): Promise<string | undefined> {
    const { terminal, theme } = this.#options
    return new Promise((resolve) => {
      const done = (value: string | undefined): void => {
        this.screen.close()
        this.#showApproval()
        resolve(value)
      }
      this.screen.ask(new Picker({ title, choices, theme, rows: () => terminal.rows, done }))
    })
  }

  /** The question that is next, unless something else is being asked. */
  #showApproval(): void {
    const { now, terminal, theme } = this.#options
    const { asking } = this.screen
    const current = this.#desk.current
    if (asking instanceof ApprovalDialog) {
      if (asking.ask === current?.ask) return
      asking.close()
      this.screen.close()
    } else if (asking !== undefined) return
    if (current === undefined) return
    const { ask } = current
    this.screen.ask(
      new ApprovalDialog({
        ask,
        theme,
        now,
        later: this.#options.later ?? afterInput,
        waiting: () => this.#desk.current?.waiting ?? 1,
        size: () => ({ columns: terminal.columns, rows: terminal.rows }),
        text: () => this.screen.editor.getText(),
        typed: (data) => this.screen.editor.handleInput(data),
        answer: (approval) => this.#desk.answer(ask, approval)
      })
    )
  }

  #key(data: string): boolean {
    if (isKeyRelease(data)) return false
    if (matchesKey(data, "ctrl+c")) return this.#interrupted()
    if (matchesKey(data, "ctrl+z")) return handled(this.#options.suspend())
    if (matchesKey(data, "ctrl+l")) return handled(this.screen.repaint())
    if (matchesKey(data, "ctrl+t")) return handled(this.#take({ type: "expand", what: "thinking" }))
    if (matchesKey(data, "ctrl+o")) return handled(this.#take({ type: "expand", what: "tools" }))
    if (this.screen.asking !== undefined) return false
    if (matchesKey(data, "alt+enter")) return handled(this.#submitLater())
    const { editor } = this.screen
    if (matchesKey(data, "ctrl+d") && editor.getText() === "") return handled(this.#options.left())
    if (matchesKey(data, "escape") && !editor.isShowingAutocomplete()) return handled(this.#abort())
    return false
  }

  #submitLater(): void {
    const { editor } = this.screen
    const text = editor.getExpandedText()
    editor.setText("")
    this.submit(text, "follow_up")
  }

  /** Waiting messages are not lost: they go back into the editor. */
  #abort(): void {
    if (this.#state.active === undefined) return
    const { editor } = this.screen
    const typed = editor.getExpandedText()
    const waited = this.#state.queue.map(({ text }) => text)
    this.#options.client.abort({ clearQueue: true })
    this.#take({ type: "unqueued" })
    if (waited.length > 0) editor.setText([...waited, ...(typed === "" ? [] : [typed])].join("\n\n"))
  }

  #interrupted(): boolean {
    const now = this.#options.now()
    if (now - this.#interruptedAt < twiceMillis) return handled(this.#options.left())
    this.#interruptedAt = now
    const { asking, editor } = this.screen
    // A question is left by its own key.
    if (asking !== undefined) asking.handleInput?.("\u001b")
    else editor.setText("")
    this.screen.hint = "Ctrl-C again leaves; the session can be resumed"
    this.screen.redraw()
    return true
  }
}

const handled = (_done: void): boolean => true

/** Keys that have come are read first: a machine that was busy for a moment shows them before the time is up. */
const afterInput = (millis: number, run: () => void): (() => void) => {
  const timer = setTimeout(() => setImmediate(run), millis)
  return () => clearTimeout(timer)
}
