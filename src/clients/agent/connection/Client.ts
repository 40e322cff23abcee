import type { Steer, ThinkingLevel } from "#schemas/agents/ClientFrame.ts"
import type { Ready } from "#schemas/agents/ServerFrame.ts"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"
import type { ClientListener } from "./ClientEvents.ts"
import type { AgentSession } from "./ServerRest.ts"

/**
 * Asks the user. Several calls may ask at once; the implementation asks a person one after the other. When the signal
 * is aborted the call is gone, and the answer counts no longer.
 */
export type Approve = (ask: ApprovalAsk, signal: AbortSignal) => Promise<Approval>

/** One session with a server, as those see it who show it: the terminal, and the modes that print. */
export interface Client {
  readonly events: {
    /** Gives back how to stop listening. */
    readonly subscribe: (listener: ClientListener) => () => void
  }
  /** Sets the function that answers from here on when a call needs the user's yes. */
  answerApprovals(approve: Approve): void
  /** The server's last `ready`; undefined before the first. */
  readonly ready: Ready | undefined
  /** The prompt that is being worked on. */
  readonly activePrompt: string | undefined
  /** Connects. Fails with `ConnectionClosed` where that is of no use; else it goes on trying. */
  start(): Promise<Ready>
  /**
   * Gives the id of the prompt. It is kept and sent again until the server has it. Throws `PromptTooLong`.
   * `images` are ids of uploaded files.
   */
  prompt(text: string, images?: ReadonlyArray<string>): string
  steer(text: string, mode: NonNullable<Steer["mode"]>): string
  /** Ends the running prompt, and its calls on this machine. */
  abort(options?: { readonly clearQueue?: boolean }): void
  /** Is answered as a prompt of this id is. */
  compact(instructions?: string): string
  /** The same session, with another model or thinking level; where that is refused it fails, and all is as before. */
  reopen(changes: { readonly model?: string; readonly thinkingLevel?: ThinkingLevel }): Promise<Ready>
  newSession(): Promise<Ready>
  /** Another session of earlier. Where it cannot be had it fails, and goes on with the one of before. */
  resume(sessionId: string): Promise<Ready>
  /** Ends what runs on this machine, says goodbye and closes. The session can still be resumed later. */
  bye(): Promise<void>
  /** The latest sessions of the key's owner, newest first. */
  sessions(): Promise<ReadonlyArray<AgentSession>>
  /** Uploads an image for `prompt`, and gives its id. */
  upload(image: { readonly name: string; readonly type: string; readonly bytes: Uint8Array }): Promise<string>
}
