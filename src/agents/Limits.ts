/** Limits of the agents room. Part of `limits` (src/Limits.ts). */
export const agentLimits = {
  /** frames kept of one session for a resume */
  agentRingBytes: 4 * 1024 * 1024,
  /** with so many bytes waiting for a slow client, deltas are joined until it has caught up … */
  agentCoalesceBytes: 256 * 1024,
  /** … and with so many its socket is closed, resumable */
  agentSlowBytes: 4 * 1024 * 1024,
  /** frames of one client in a second; above it, or … */
  agentFramesPerSecond: 2_000,
  /** … above so many bytes of them, the socket is closed */
  agentBytesPerSecond: 16 * 1024 * 1024,
  /** a client's time to report on a call that it was told to end */
  agentCancelMillis: 5_000,
  /** a client's time beyond a call's own, before it is told to end the call */
  agentCallGraceMillis: 5_000,
  /** model calls of one prompt */
  agentTurns: 200,
  /** pause before a model call is tried again, doubled each time */
  agentRetryMillis: 1_000,
  /** an image of a prompt */
  agentImageBytes: 5 * 1024 * 1024,
  /** attached sessions are marked alive in Postgres this often … */
  agentTouchMillis: 60_000,
  /** … and this often the work of dead processes, and work that was left alone, is looked for */
  agentAdoptMillis: 5_000,
  /** sessions in memory */
  agentSessions: 50_000,
  /** live sessions of one key; a further one is refused at its hello */
  agentSessionsPerKey: 8,
  /** a session without a sign of life for so long is no longer live … */
  agentLiveMillis: 15 * 60_000,
  /** … and after so long can no longer be resumed */
  agentResumeMillis: 30 * 24 * 3_600_000,
  /** such sessions are looked for this often */
  agentSweepEveryMillis: 60_000,
  /** numbers of frames that are reserved at a time */
  agentSeqReserve: 10_000,
  /** sessions that go to Postgres in one statement … */
  agentBatchSessions: 500,
  /** … with so many bytes of steps */
  agentBatchBytes: 4 * 1024 * 1024,
  /** statements of one kind begin at least so far apart: the longest that a step waits for others */
  agentBatchEveryMillis: 8,
  /** a hello that has to wait for Postgres longer fails */
  agentStoreMillis: 2_000,
  /** a write that takes longer has failed, and is made again */
  agentWriteMillis: 10_000,
  /** steps that are searched for a page of a transcript … */
  transcriptSteps: 5_000,
  /** … and the bytes that are read of them, where it is more than one entry */
  transcriptBytes: 1024 * 1024,
  /**
   * several machines: one that was silent for so long is dead, unless `CLUSTER_SILENT_SECONDS` sets another time; each
   * gives a sign of life four times as often
   */
  clusterSilentSeconds: 12,
  /** processes look this often for live ones, and for locks that they did not get */
  clusterLookMillis: 1_000,
  /** sessions are given up when the lock of their home has been away for so long: a lost one may come back */
  clusterGraceMillis: 2_500,
  /** how long a start waits for homes of its own */
  clusterStartMillis: 15_000,
  /** a connection to a process of the cluster has to prove the secret within this */
  clusterHandshakeMillis: 5_000,
  /** a session's home that was not found by then counts as away, and its client comes again */
  clusterFindMillis: 3_000,
  /** the largest batch for another machine */
  clusterBatchBytes: 256 * 1024,
  /** frames that wait for one other machine, in either direction; above it the next client's socket is closed, resumable */
  clusterWaitingBytes: 64 * 1024 * 1024
} as const
