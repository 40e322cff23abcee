/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64,
  /** directories of one user; above it 409 */
  directoriesPerUser: 100_000,
  /** entries that a walk through a directory reads by one statement */
  walkEntriesAtOnce: 2_000,
  /** entries of one archive; above it 422 */
  archiveEntries: 1_000_000,
  /** archives whose entries are read at once; others wait … */
  archivePlansAtOnce: 4,
  /** … and one that takes longer is 503 */
  archivePlanMillis: 120_000,
  /** memory of the entries of archives that are being sent, some 110 bytes each, in fair shares per user; above it 503 */
  archivePlansBytes: 256 * 1024 * 1024,
  /** requests of a key in a fixed hour, unless `FILES_RATE_PER_HOUR` says otherwise; above it 429 */
  filesRatePerHour: 1_000
} as const
