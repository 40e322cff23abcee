/** Limits of accounts: keys, rates, files. Part of `limits` (src/Limits.ts). */
export const accountsLimits = {
  /** one account file, unless `MAX_FILE_SIZE` says otherwise; above it 413 */
  fileBytes: 100 * 1024 * 1024,

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
