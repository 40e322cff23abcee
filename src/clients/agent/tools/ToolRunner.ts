import type { ToolCall, ToolHooks, ToolOutcome } from "./ToolCall.ts"
import { ToolFailure } from "./ToolFailure.ts"

export interface ToolRunnerOptions {
  /** the workspace: an existing directory, neither the home directory nor one above it */
  readonly root: string
  /** the client's own configuration; no tool reads or writes it */
  readonly configDir: string
  /** `auto`: commands run in the system's sandbox where there is one; `off`: every command asks */
  readonly sandbox: "auto" | "off"
  /** `off`: commands never get the network, and nobody is asked */
  readonly network: "ask" | "off"
}

/** Runs what the server asks for, within this machine's rules. */
export class ToolRunner {
  static open(_options: ToolRunnerOptions): Promise<ToolRunner> {
    return Promise.resolve(new ToolRunner())
  }

  /** Never rejects: whatever happens is an outcome. */
  run({ method }: ToolCall, _hooks: ToolHooks): Promise<ToolOutcome> {
    const failure = new ToolFailure("invalid_params", `This client has no tool ${method}`)
    return Promise.resolve({ ok: false, error: { code: failure.code, message: failure.message } })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
