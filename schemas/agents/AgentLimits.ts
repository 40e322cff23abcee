/**
 * The limits of protocol 1, for both sides. Source: contract/agents#agent-limits. `ready.limits` sends a client the
 * ones that it needs.
 */
export const agentLimits = {
  /** one frame, as UTF-8; above it the socket is closed with 1009 */
  frameBytes: 1024 * 1024,
  /** the first frame has to be a hello, and come within this */
  helloMillis: 10_000,
  /** the server sends a ping this often … */
  pingMillis: 25_000,
  /** … and closes a socket that was silent for so long as dead (4008) */
  deadMillis: 60_000,
  /** `prompt.text` and `steer.text`, as UTF-8 */
  promptBytes: 256 * 1024,
  /** images of one prompt */
  promptImages: 8,
  /** steers and follow-ups that wait */
  queue: 16,
  /** … and their bytes as JSON: `queue_update` lists all of them in one frame */
  queueBytes: 512 * 1024,
  /** tool calls of one message that are under way at once */
  callsInFlight: 8,
  /** `tool.stream.data`, as UTF-8 … */
  streamChunkBytes: 16 * 1024,
  /** … and all of one call; the rest is left out */
  streamBytes: 1024 * 1024,
  /** default time limit of a command … */
  execSeconds: 120,
  /** … and the longest */
  execSecondsMax: 3_600,
  /** text of one tool's result for the model: so many lines … */
  textLines: 2_000,
  /** … and so many bytes */
  textBytes: 50 * 1024,
  /** characters of a tool's error; the rest is left out */
  errorCharacters: 4_096,
  /** characters of one line that grep shows */
  grepLineCharacters: 500,
  /** matches that grep gives by default */
  grepMatches: 100,
  /** paths that find gives by default */
  globEntries: 1_000,
  /** names that ls gives by default */
  listEntries: 500
} as const
