/** Numbers of shared files. Part of `limits` (src/Limits.ts). */
export const filesLimits = {
  /** directories below each other, the bucket included */
  directoryLevels: 64,
  /** requests of a key in a fixed hour, unless `FILES_RATE_PER_HOUR` says otherwise; above it 429 */
  filesRatePerHour: 1_000,
  /** bytes of one file, unless `FILES_MAX_SIZE` says otherwise; above it 413 */
  sharedFileBytes: 100 * 1024 ** 3,
  /** resumable uploads of one user that are not complete; above it 409 */
  uploadsPerUser: 1_000,
  /** open ones are counted this often, for `/metrics` */
  uploadsCountedEveryMillis: 60_000,
  /** uploads that one is made of; above it 400 */
  uploadParts: 1_000,
  /** bytes of `Upload-Metadata` */
  uploadMetadataBytes: 8_192,
  /** an earlier request on the same upload reads what came before its connection was cut, for so long at most … */
  uploadDrainMillis: 2_000,
  /** … and until nothing has come for so long */
  uploadQuietMillis: 200,
  /** a request waits this long for an earlier one of another process to let go of its upload */
  uploadTurnMillis: 3_000,
  /** uploads whose bytes are all there become files at the latest so long after their last request */
  uploadSweepEveryMillis: 60_000,
  /** devices of one user that are not deleted */
  devicesPerUser: 100,
  /** a device is written down as seen so often at most */
  deviceSeenMillis: 60_000,
  /** flags of synchronisation of one user, exclusions included */
  syncFlagsPerUser: 10_000,
  /** directories and files of one manifest; above it 409 */
  manifestEntries: 200_000,
  /** manifests that are read at once; others wait … */
  manifestsAtOnce: 2,
  /** … so many together with those; further ones are 503 … */
  manifestsUnderWay: 64,
  /** … and one that takes longer, waiting included, is 503 */
  manifestMillis: 60_000,
  /** memory of manifests that are being sent, some 500 bytes an entry, in fair shares per user; above it 503 */
  manifestsBytes: 384 * 1024 * 1024,
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
  /** versions of all files of one user, those in the trash included; above it 409 */
  versionsPerUser: 10_000_000,
  /** entries that a walk through a directory reads by one statement */
  walkEntriesAtOnce: 2_000,
  /** entries of one archive; above it 422 */
  archiveEntries: 1_000_000,
  /** archives whose entries are read at once; others wait … */
  archivePlansAtOnce: 4,
  /** … so many together with those; further ones are 503 … */
  archivePlansUnderWay: 64,
  /** … and one that takes longer, waiting included, is 503 */
  archivePlanMillis: 120_000,
  /** memory of the entries of archives that are being sent, some 110 bytes each, in fair shares per user; above it 503 */
  archivePlansBytes: 256 * 1024 * 1024,
  /** files of one form; above it 400 */
  filesPerUpload: 1_000,
  /** parts of one form: files, their fields, and some that are ignored; above it 400 */
  partsPerUpload: 6_000,
  /** bytes of one field of a form … */
  uploadFieldBytes: 8 * 1024,
  /** … and of all of them, boundaries and heads of parts aside; above it 413 */
  uploadFieldsBytes: 4 * 1024 * 1024,
  /** the links that uploads have of their own work for so long */
  uploadLinkMillis: 3_600_000,
  /** links of one user that have not expired, uploads' own aside; above it 409 */
  linksPerUser: 10_000,
  /** downloads of a link that its owner is shown … */
  usesPerLink: 100,
  /** … for so long */
  linkUseKeptMillis: 90 * 86_400_000,
  /** a download goes on, in as many requests as it takes, for so long … */
  linkUseMillis: 3_600_000,
  /** … and counts no bytes that were in flight when a connection was cut, so many each time … */
  linkBytesInFlight: 16 * 1024 ** 2,
  /** … and so many in all */
  linkBytesLost: 1024 ** 3,
  /** expired links are said to be so for so long, uploads' own for a day; then they are unknown */
  expiredLinkMillis: 90 * 86_400_000,
  expiredUploadLinkMillis: 86_400_000,
  /** which of them are over is looked for this often */
  linkSweepEveryMillis: 10 * 60_000,
  /** revoked links that are being downloaded are looked for this often, where no notice came */
  linkWatchMillis: 400,
  /** passwords of links that are hashed at once, 32 MiB and some 80 ms of a core each … */
  passwordsAtOnce: 2,
  /** … and those that wait for it; above it 503 */
  passwordsWaiting: 100,
  /** wrong passwords for a link from one address (of IPv6, its /64) in a fixed minute; above it 429 */
  wrongPasswordsPerMinute: 10,
  /** and in a fixed hour from all of them */
  wrongPasswordsPerHour: 100,
  /** days for which the trash keeps what is in it, unless `TRASH_DAYS` says otherwise */
  trashDays: 30,
  /** the trash and old versions are swept this often */
  fileSweepEveryMillis: 3_600_000,
  /** versions that are deleted for good by one transaction … */
  versionsPurgedAtOnce: 500,
  /** … and before the answer to a request that empties the trash; the others follow */
  versionsPurgedByRequest: 5_000,
  /** versions of a file that stay however old they are … */
  versionsKept: 10,
  /** … and the most of one file; beyond it the oldest are deleted */
  versionsPerFile: 10_000
} as const
