import type { ClientEvent } from "../connection/ClientEvents.ts"
import type { Ready } from "#schemas/agents/ServerFrame.ts"

/** The display of a mode without a terminal. */
export interface Reporter {
  /** The session is attached for the first time. */
  started(ready: Ready): void
  /** In order, those before `started` too. */
  take(event: ClientEvent): void
  /** Something that the user should know and that is no event. */
  note(text: string): void
  /** Nothing comes any more. */
  ended(): void
}

export type Write = (text: string) => void
