import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Approvals } from "#src/clients/agent/boundary/Approvals.ts"
import { runTerminal, type TerminalOptions } from "#src/clients/agent/terminal/RunTerminal.ts"
import { ScriptedClient } from "./ScriptedClient.ts"
import { VirtualClock } from "./VirtualClock.ts"
import { VirtualTerminal } from "./VirtualTerminal.ts"

export interface RigOptions extends Partial<TerminalOptions> {
  readonly columns?: number
  readonly rows?: number
}

export const keys = {
  enter: "\r",
  altEnter: "\u001b\r",
  escape: "\u001b",
  up: "\u001b[A",
  down: "\u001b[B",
  right: "\u001b[C",
  left: "\u001b[D",
  pageDown: "\u001b[6~",
  tab: "\t",
  ctrlC: "\u0003",
  ctrlD: "\u0004",
  ctrlO: "\u000f",
  ctrlT: "\u0014"
} as const

/** The whole interactive program with a server, a terminal and a clock that the test has in its hands. */
export class TerminalRig {
  readonly client = new ScriptedClient()
  readonly terminal: VirtualTerminal
  readonly directory = mkdtempSync(join(tmpdir(), "signalbox-terminal-"))
  readonly approvals = new Approvals(this.directory, "/home/ada/project")
  readonly code: Promise<number>
  readonly clock = new VirtualClock(1_000_000)

  constructor({ columns = 80, rows = 24, ...options }: RigOptions = {}) {
    this.terminal = new VirtualTerminal(columns, rows)
    this.code = runTerminal(this.client, {
      version: "1.2.3",
      workspace: { root: "/home/ada/project", name: "project" },
      historyFile: join(this.directory, "history"),
      permissions: this.approvals,
      models: () =>
        Promise.resolve([
          { id: "sandbox/coder", name: "Scripted", context_length: 128_000 },
          { id: "acme/large", name: "Large", context_length: 1_000_000 }
        ]),
      files: () => Promise.resolve(["src/sum.ts", "src/deep/other.ts", "README.md"]),
      attach: (text) =>
        Promise.resolve(
          text.includes("@shot.png")
            ? {
                text: `${text}\n\n<file path="a.ts">\nsecret words\n</file>`,
                images: ["fil_1"],
                problems: ["@b.ts: binary"]
              }
            : { text, images: [], problems: [] }
        ),
      environment: { TERM: "xterm-256color" },
      terminal: this.terminal,
      now: () => this.now,
      later: this.clock.later,
      ...options
    })
  }

  get now(): number {
    return this.clock.now
  }
  set now(millis: number) {
    this.clock.goTo(millis)
  }

  text(): Promise<string> {
    return this.terminal.text()
  }

  /** A line, and Enter; the editor's suggestions have come and gone. */
  async enter(line: string): Promise<void> {
    this.terminal.type(...line)
    await this.text()
    this.terminal.type(keys.enter)
    await this.text()
  }

  /** Leaves, unless it has left already, and gives the exit code. */
  async close(): Promise<number> {
    this.terminal.type(keys.ctrlC, keys.ctrlC)
    const code = await this.code
    rmSync(this.directory, { recursive: true, force: true })
    return code
  }
}

/** Runs a test with a rig of its own. */
export const withRig =
  (test: (rig: TerminalRig) => Promise<void>, options: RigOptions = {}) =>
  async (): Promise<void> => {
    const rig = new TerminalRig(options)
    try {
      await rig.text()
      await test(rig)
    } finally {
      await rig.close()
    }
  }
