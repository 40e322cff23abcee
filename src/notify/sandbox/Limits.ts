/** Numbers of the sandbox of channels. */
export const sandboxLimits = {
  /** a longer body is answered 413 and not read */
  bodyBytes: 256 * 1024,
  /** subscriptions and webhooks, of each; above it 429 */
  channels: 20_000,
  /** subscriptions that one request makes */
  channelsAtOnce: 1_000,
  /** entries of the inbox; the oldest make room … */
  entries: 20_000,
  /** … as they do above these bytes of their messages */
  entryBytes: 64 * 1024 * 1024,
  /** messages that wait for a browser that is offline, of one subscription; above it 429 */
  waitingPerChannel: 1_000,
  /** ids by which a repetition is known; the oldest are forgotten */
  knownIds: 100_000,
  /** faults that are ordered at once; above it 429 */
  faults: 1_000,
  /** requests that a fault may change */
  faultTimes: 1_000_000,
  /** the longest delay of an answer, and the longest wait for an entry */
  delayMillis: 60_000,
  /** requests that wait for an entry; above it 429 */
  waiters: 256,
  /** entries of one answer */
  listed: 1_000,
  connections: 1_024
} as const
