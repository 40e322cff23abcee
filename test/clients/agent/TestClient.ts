import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ServerFrame } from "#schemas/agents/ServerFrame.ts"
import { AgentClient, type AgentClientOptions } from "#src/clients/agent/connection/AgentClient.ts"
import type { ClientEvent } from "#src/clients/agent/connection/ClientEvents.ts"
import { JournalDirectory } from "#src/clients/agent/journal/JournalDirectory.ts"
import type { ToolCall, ToolHooks, ToolOutcome } from "#src/clients/agent/tools/ToolCall.ts"

export type Run = (call: ToolCall, hooks: ToolHooks) => Promise<ToolOutcome>

export const done: Run = ({ callId }) => Promise.resolve({ ok: true, result: { of: callId } })

/** A directory that goes when its user is through. */
export const inDirectory = async <A>(use: (path: string) => Promise<A>): Promise<A> => {
  const path = mkdtempSync(join(tmpdir(), "signalbox-agent-test-"))
  try {
    return await use(path)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

/** An agent client in this process, and all that it told. */
export class TestClient {
  readonly client: AgentClient
  readonly events: Array<ClientEvent> = []
  /** ids of calls, in the order in which they were made */
  readonly runs: Array<string> = []
  private readonly watchers = new Set<() => void>()

  constructor(
    server: { readonly url: string },
    stateDir: string,
    options: Partial<AgentClientOptions> & { readonly run?: Run } = {}
  ) {
    const { run = done, ...rest } = options
    this.client = new AgentClient({
      server: { url: server.url, key: "sk-test" },
      workspace: { root: "/w", name: "w" },
      withHistory: false,
      journals: new JournalDirectory(stateDir),
      approve: () => Promise.resolve("no"),
      runner: {
        runInTurn: async (call, { begin, ...hooks }) => {
          await begin()
          this.runs.push(call.callId)
          const outcome = run(call, hooks)
          this.look()
          return outcome
        }
      },
      random: () => 0,
      ...rest
    })
    this.client.events.subscribe((event) => {
      this.events.push(event)
      this.look()
    })
  }

  get frames(): ReadonlyArray<ServerFrame> {
    return this.events.flatMap((event) => (event.type === "frame" ? [event.frame] : []))
  }

  private look(): void {
    for (const watch of this.watchers) watch()
  }

  /** Done when something holds, which is looked at after each event, and when a call has begun. */
  until(holds: () => boolean): Promise<void> {
    if (holds()) return Promise.resolve()
    return new Promise((resolve) => {
      const watch = (): void => {
        if (!holds()) return
        this.watchers.delete(watch)
        resolve()
      }
      this.watchers.add(watch)
    })
  }

  untilEvent(is: (event: ClientEvent) => boolean): Promise<void> {
    return this.until(() => this.events.some(is))
  }

  untilDone(id: string): Promise<void> {
    return this.until(() => this.frames.some((frame) => frame.type === "prompt.done" && frame.id === id))
  }
}
