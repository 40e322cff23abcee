/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64,
  /** directories of one user; above it 409 */
  directoriesPerUser: 100_000,
  /** entries that a walk through a directory reads by one statement */
  walkEntriesAtOnce: 2_000,
  /** requests of a key in a fixed hour, unless `FILES_RATE_PER_HOUR` says otherwise; above it 429 */
  filesRatePerHour: 1_000,
  /** the links that uploads have of their own work for so long */
  uploadLinkMillis: 3_600_000,
  /** one shared file, unless `FILES_MAX_SIZE` says otherwise; above it 413 */
  sharedFileBytes: 100 * 1024 ** 3,
  /** files of one form; above it 400 */
  filesPerUpload: 1_000,
  /** parts of one form: files, their fields, and some that are ignored; above it 400 */
  partsPerUpload: 6_000,
  /** bytes of one field of a form … */
  uploadFieldBytes: 8 * 1024,
  /** … and of all of them, boundaries and heads of parts aside; above it 413 */
  uploadFieldsBytes: 4 * 1024 * 1024
} as const
