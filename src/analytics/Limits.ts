/** Numbers of analytics. Part of `limits` (src/Limits.ts). */
export const analyticsLimits = {
  /** body of a browser event, `POST /api/event`; above it 413 */
  eventBodyBytes: 64 * 1024,
  /** body of a server-side batch, `POST /api/v1/collect`; above it 413 */
  collectBodyBytes: 8 * 1024 * 1024,
  /** events in one `collect` body */
  collectEvents: 100,

  /** sites of one user */
  sitesPerUser: 1_000,
  /** browser events a minute for one site and visitor */
  visitorEventsPerMinute: 300,
  /** browser events a minute for one site and address (of IPv6, the /64), with any number of visitors */
  addressEventsPerMinute: 3_000,
  /** addresses a minute whose events are counted; beyond it the older half is forgotten */
  limitedAddresses: 250_000,
  /** collected events a second for one site */
  siteEventsPerSecond: 6_000,
  /** visitors a minute whose events are counted; beyond it the older half is forgotten */
  limitedVisitors: 1_000_000,
  /** sites whose collected events are counted; beyond it the oldest is forgotten */
  limitedSites: 100_000,

  /** User-Agents whose reading is remembered */
  userAgents: 20_000,
  /** addresses of pages and referrers whose reading is remembered, of up to 1,024 characters */
  pageUrls: 8_192,
  /** ids of events remembered for one site; beyond it the oldest are forgotten before their 24 hours are over */
  eventIdsPerSite: 10_000_000,
  /** sites whose files of event ids are open at once */
  eventIdSitesOpen: 64,
  /** sites with realtime figures in memory; beyond it the quietest is forgotten */
  realtimeSites: 10_000,
  /** visitors on pages in the last five minutes that realtime figures know by name, over all sites */
  realtimePresences: 500_000,
  /** counts of dropped events are written to Postgres this often; a crash loses as much of them */
  dropFlushMillis: 1_000,

  /** the log of imported events grows to this size while ClickHouse is behind, then parts of imports are refused with 429 */
  importLogBytes: 1024 * 1024 * 1024,

  /** a read makes its site's pending rows visible first, at most this often … */
  readFlushMillis: 250,
  /** … and is answered with what is there when they are not after so long */
  readWaitMillis: 5_000,
  /** sites of which it is remembered how far their part of a log goes; beyond it those that are written are forgotten */
  pendingSites: 10_000,
  /** a batch of imported events has at most this many rows */
  importBatchRows: 20_000,
  /** rows and months of a batch of imported events that are written before waiting live events have their turn */
  importTurnRows: 2_000,
  importTurnMonths: 2,

  // --- purges: see src/docs/decisions/0023-purges.md
  /** rows are deleted so long after a deletion or reset, when other processes know of it and what was under way is stored, … */
  purgeDelayMillis: 5_000,
  /** … and once more when so much has passed */
  purgeSettleMillis: 600_000,
  /** … and what is dead is looked for this often, whatever became of that, for so many sites at a time */
  purgeLookMillis: 600_000,
  purgeSites: 1_000,
  /** deleted rows are taken from the disk this often */
  purgeDiskMillis: 12 * 3_600_000,
  /** rows of a site that one statement deletes; of more, each month has a statement of its own, … */
  purgeStatementRows: 1_000_000,
  /** … with this pause behind it */
  purgeRestMillis: 200,
  /** rows of Postgres that one statement deletes */
  purgeRows: 1_000,
  /** a purge of a site, or of a month's deleted rows from the disk, that takes longer has failed, and goes on */
  purgeAttemptMillis: 600_000,
  /** the id of a purged site is remembered for so long, for logs that come late */
  purgedKeptMillis: 400 * 24 * 3_600_000,

  // --- the lease on counting: see src/docs/decisions/0018-one-process-counts.md
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
