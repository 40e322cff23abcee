/** Where a session's frames go, near or far. What cannot be sent any more is dropped silently: the client resumes. */
export interface FrameSink {
  /** false where bytes wait for the client; whoever holds the sink is told when they have gone */
  send(text: string): boolean
  readonly bufferedBytes: number
  close(code: number, reason: string): void
}
