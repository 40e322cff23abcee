/** The destination of a session's frames, near or far. Unsendable frames are dropped silently: the client resumes. */
export interface FrameSink {
  /** false if bytes wait for the client; the sink's holder is called when they have gone */
  send(text: string): boolean
  readonly bufferedBytes: number
  close(code: number, reason: string): void
}
