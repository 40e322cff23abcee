/** Numbers of the lease on counting: see src/docs/decisions/0018-one-process-counts.md. Part of `limits` (Limits.ts). */
export const countingLimits = {
  /** a process may count for so long after Postgres, or ClickHouse, last said that it is the one */
  countingLeaseMillis: 3_500,
  /** … and asks again this often */
  countingRenewMillis: 700,
  /** as `countingLeaseMillis` and `countingRenewMillis`, beside a Postgres of its own, which no other process has */
  countingAloneLeaseMillis: 180_000,
  countingAloneRenewMillis: 45_000,
  /** a process that stands by looks this often whether it is its turn */
  countingPollMillis: 500,
  /** a question about the lease that takes longer has failed */
  countingAskMillis: 1_200,
  /** a process that counts lets another have its turn when its own log is drained within this, … */
  countingHandOverMillis: 2_000,
  /** … else tries again after this */
  countingHandOverRetryMillis: 10_000
} as const
