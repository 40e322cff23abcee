import { linkLimits } from "./links/LinkLimits.ts"

/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64,
  /** requests of a key in a fixed hour, unless `FILES_RATE_PER_HOUR` says otherwise; above it 429 */
  filesRatePerHour: 1_000,
  /** devices of one user that are not deleted */
  devicesPerUser: 100,
  /** a device is written down as seen so often at most */
  deviceSeenMillis: 60_000,
  /** flags of synchronisation of one user, exclusions included */
  syncFlagsPerUser: 10_000,
  /** a login of a command line is good for so long … */
  cliLoginMillis: 10 * 60_000,
  /** … begun so often from one address … */
  cliLoginsPerMinute: 10,
  /** … asked about so often from one … */
  cliLoginPollsPerMinute: 600,
  /** … and so many wait at once; above it 503 */
  cliLoginsWaiting: 10_000,
  /** directories of one user; above it 409 */
  directoriesPerUser: 100_000,
  /** entries that a walk through a directory reads by one statement */
  walkEntriesAtOnce: 2_000,
  ...linkLimits
} as const
