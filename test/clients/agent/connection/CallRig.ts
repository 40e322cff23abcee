import { join } from "node:path"
import type { ToolResult } from "#schemas/agents/ClientFrame.ts"
import type { ToolRequest } from "#schemas/agents/ServerFrame.ts"
import { tools, type ToolMethod } from "#schemas/agents/ToolCall.ts"
import type { Approval } from "#src/clients/agent/boundary/Approval.ts"
import { ToolCalls } from "#src/clients/agent/connection/ToolCalls.ts"
import { SessionJournal } from "#src/clients/agent/journal/SessionJournal.ts"
import { type TestWorkspace, withWorkspace } from "../boundary/TestWorkspace.ts"

export interface MadeCall {
  readonly method: ToolMethod
  readonly params: unknown
  /** the user's answer where the call asks; "no" when absent */
  readonly answer?: Approval | Promise<Approval> | undefined
}

/** The client's side of a session over a real workspace and a real journal, without a socket. */
export interface CallRig {
  readonly workspace: TestWorkspace
  /** Asks for a call; earlier requests come before it. */
  ask(call: MadeCall): { readonly callId: string; readonly answer: Promise<ToolResult> }
  /** Asks for all calls of a message at once; the answers in source order. */
  message(calls: ReadonlyArray<MadeCall>): Promise<ReadonlyArray<ToolResult>>
  cancel(callId: string): void
}

export const withCalls = <A>(
  use: (rig: CallRig) => Promise<A>,
  options: Parameters<typeof withWorkspace>[1] = {}
): Promise<A> =>
  withWorkspace(async (workspace) => {
    const journal = new SessionJournal(join(workspace.base, "session", "calls.log"), { url: "", root: "" })
    const settle = new Map<string, (result: ToolResult) => void>()
    const answers = new Map<string, MadeCall["answer"]>()
    const calls = new ToolCalls(journal, {
      runner: workspace.runner,
      approve: async ({ callId }) => (await answers.get(callId)) ?? "no",
      send: (frame) => {
        if (frame.type === "tool.result") settle.get(frame.callId)?.(frame)
      },
      tell: () => undefined,
      isCongested: () => false
    })
    let seq = 0
    const rig: CallRig = {
      workspace,
      ask({ answer, method, params }) {
        const callId = `c${++seq}`
        const given = new Promise<ToolResult>((resolve) => settle.set(callId, resolve))
        answers.set(callId, answer)
        const replay = tools.find((tool) => tool.method === method)?.replay ?? "never"
        const request: ToolRequest = {
          type: "tool.request",
          seq,
          callId,
          promptId: "p",
          method,
          params,
          timeoutMs: 60_000,
          replay,
          attempt: 1
        }
        calls.request(request)
        return { callId, answer: given }
      },
      message: (made) => Promise.all(made.map((call) => rig.ask(call).answer)),
      cancel: (callId) => calls.observe({ type: "tool.cancel", seq: ++seq, callId, reason: "abort" })
    }
    try {
      return await use(rig)
    } finally {
      calls.stopAll()
      await calls.settled()
      await journal.close()
    }
  }, options)

export const edit = (path: string, oldText: string, newText: string): MadeCall => ({
  method: "fs.edit",
  params: { path, edits: [{ oldText, newText }] }
})
export const write = (path: string, content: string): MadeCall => ({
  method: "fs.write",
  params: { path, content }
})
export const read = (path: string): MadeCall => ({ method: "fs.read", params: { path } })
export const bash = (command: string): MadeCall => ({
  method: "proc.exec",
  params: { command },
  answer: "once"
})
