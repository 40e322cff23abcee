/** Limits of jobs. Part of `limits` (src/Limits.ts). */
export const jobLimits = {
  /** connections to Postgres for taking and settling jobs, beside those of requests */
  jobConnections: 3,
  /** a lane belongs to the process that took it for so long; it is renewed three times in that time */
  jobLeaseMillis: 30_000,
  /** a queue is looked at this often where no notice comes */
  jobPollMillis: 5_000,
  /** the payload of one job as JSON */
  jobPayloadBytes: 256 * 1024,
  /** jobs of one offer */
  jobsPerOffer: 50_000,
  /** pause after a first failed attempt, doubled with each up to `jobRetryMaxMillis` */
  jobRetryMinMillis: 1_000,
  jobRetryMaxMillis: 15 * 60_000,
  /** after so many attempts a job is dead, unless its queue says otherwise */
  jobAttemptsMax: 20,
  /** attempts under way when the process stops may take this long */
  jobStopMillis: 10_000,
  /** a lane that has been due for so long makes `jobs` degraded on `/readyz` */
  jobLateMillis: 60_000,
  /** counts of what waits are taken this often */
  jobCountsMillis: 10_000,
  /** ended jobs are kept this long … */
  jobsDoneMillis: 24 * 3_600_000,
  /** … and dead ones, which can be revived, this long */
  jobsDeadMillis: 90 * 24 * 3_600_000
} as const
