/** Numbers of share links. Part of `filesLimits`. */
export const linkLimits = {
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
  /** revoked links that are being downloaded are looked for this often, where no notice came */
  linkWatchMillis: 400,
  /** passwords of links that are hashed at once, 32 MiB and some 80 ms of a core each … */
  passwordsAtOnce: 2,
  /** … and those that wait for it; above it 503 */
  passwordsWaiting: 100,
  /** wrong passwords for a link from one address (of IPv6, its /64) in a fixed minute; above it 429 */
  wrongPasswordsPerMinute: 10,
  /** and in a fixed hour from all of them */
  wrongPasswordsPerHour: 100
} as const
