/** Limits of accounts: keys, rates, files. Part of `limits` (src/Limits.ts). */
export const accountsLimits = {
  /** one account file, unless `MAX_FILE_SIZE` says otherwise; above it 413 */
  fileBytes: 100 * 1024 * 1024,
  /** bytes that have to stay free on the disk of the blobs, unless `FILES_MIN_FREE` says otherwise; below it 507 */
  filesMinFreeBytes: 1024 ** 3,
  /** account files of before that are adopted side by side at a start */
  adoptedAtOnce: 8,
  /** bytes of a form beside its file, which is measured exactly where it is stored: boundaries and heads of parts */
  fileFormBytes: 64 * 1024,
  /** files whose rows are kept in memory after they were asked for... */
  recentFiles: 10_000,
  /** ...so long at most, which another process may go on to serve one that was deleted, if it is not told... */
  recentFileMillis: 10_000,
  /** ...with their bytes, where they are no longer than this... */
  shortFileBytes: 16 * 1024,
  /** ...and have no more together */
  recentFilesBytes: 32 * 1024 * 1024,

  /** requests a key may make in a minute, unless the key carries a rate of its own */
  ratePerMinute: 600,
  /** requests a key may make at once before the rate counts */
  rateBurst: 120,
  /** the highest rate that a user may give a key of their own, unless `RATE_PER_MINUTE_MAX` sets another */
  ratePerMinuteMax: 6_000,
  /** keys of one user that are not revoked */
  keysPerUser: 100,
  /** a session ends so long after it began … */
  sessionMillis: 7 * 24 * 3_600_000,
  /** … or after its last use */
  sessionIdleMillis: 12 * 3_600_000,
  /** a use is written down only when the last one that was is so old */
  sessionTouchMillis: 5 * 60_000,
  /** and tried again so long after Postgres did not take it */
  sessionTouchRetryMillis: 60_000,
  /** a token of a session */
  sessionTokenMillis: 15 * 60_000,
  /** sessions of one user; another one ends the one whose last use is the oldest */
  sessionsPerUser: 100,
  /** a login link works for so long */
  loginLinkMillis: 15 * 60_000,
  /** login links of one user that were not used; another one takes the place of the oldest */
  loginLinksPerUser: 10,
  /** attempts to sign in from one address in a minute, good and bad ones */
  signInsPerMinute: 60,

  /** answers under way are checked this often for keys that have ended; with `cachePollMillis` less than a second */
  keyWatchMillis: 200,
  /** an idle bucket is forgotten after this long; it would be full again by then */
  rateBucketIdleMillis: 120_000,
  /** requests' worth of tokens that one machine leases from Redis at a time */
  rateLeaseTokens: 20,

  /** the API's own request counts are written to Postgres this often */
  requestCountFlushMillis: 1_000
} as const
