/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64,
  /** directories of one user; above it 409 */
  directoriesPerUser: 100_000,
  /** entries that a walk through a directory reads by one statement */
  walkEntriesAtOnce: 2_000,
  /** requests of a key in a fixed hour, unless `FILES_RATE_PER_HOUR` says otherwise; above it 429 */
  filesRatePerHour: 1_000
} as const
