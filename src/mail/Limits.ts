import { domainLimits } from "./domains/DomainSettings.ts"
import { smtpLimits } from "./transports/SmtpLimits.ts"
import { listenerLimits } from "./listener/ListenerSettings.ts"

/** Numbers of mail. Part of `limits` (src/Limits.ts). */
export const mailLimits = {
  ...domainLimits,
  ...smtpLimits,
  ...listenerLimits,
  /** body of `POST /send`; above it 413 */
  mailBodyBytes: 36 * 1024 * 1024,
  /** bytes of such bodies under way, in fair shares per user; above it 503 */
  mailBodiesBytes: 256 * 1024 * 1024,
  /** a composed message; above it 413 */
  mailBytes: 25 * 1024 * 1024,
  /** longer ones are blobs, shorter ones in their rows */
  mailRowBytes: 64 * 1024,
  /** days after which the bytes of a mail are deleted, and all that is known of it, some at a time */
  mailBodyDays: 30,
  mailDays: 90,
  mailDeletedAtOnce: 1_000,
  /** recipients of one owner in a minute, and in a day */
  mailRatePerMinute: 300,
  mailPerDay: 50_000,
  /** a send that takes longer is given up, and nothing of it is left */
  mailSendMillis: 30_000,
  /** attempts that one process makes at once, and the time of one */
  mailAttempts: 64,
  mailAttemptMillis: 15 * 60_000,
  /**
   * bytes of messages in memory for hand-overs, of those that are blobs, in fair shares per owner; above it they wait
   */
  mailMessagesBytes: 256 * 1024 * 1024,
  /** the hash of a body of this length and more is made in a thread, which is given so long, and this heap */
  mailHashInPlaceBytes: 256 * 1024,
  mailHashMillis: 30_000,
  mailHashHeapMegabytes: 256,
  /** a hand-over waits so long for one of those under way, where the route is no slower … */
  mailTurnMillis: 1_000,
  /** … else it is sent away until its turn, for so long at most */
  mailTurnMaxMillis: 30_000,
  /** a route that is down, or without a relay a domain, rests for so long at first, doubled … */
  mailRestMinMillis: 60_000,
  /** … up to this */
  mailRestMaxMillis: 3_600_000,
  /** those that wait for it come back within so long of each other */
  mailProbeMillis: 10_000,
  /** domains whose faults are remembered */
  mailGates: 10_000,
  /** `/readyz` is degraded once a delivery has been due for so long */
  mailLateMillis: 15 * 60_000,
  /** hours for which a delivery is tried */
  mailRetryHours: 72,
  /** how long a read may wait for an end, and how often it looks */
  mailWaitSeconds: 30,
  mailWaitEveryMillis: 200,
  /** the end of an attempt is written so often at most, where Postgres is away */
  mailRecordTimes: 60,
  mailRecordEveryMillis: 1_000,
  /** the inbox of the sandbox keeps so many mails of an owner, for so many days */
  mailInboxShown: 1_000,
  mailInboxDays: 7,
  /** an address is suppressed after so many soft bounces in a row */
  mailSoftBounces: 5,
  /** suppressions of one owner; those of bounces, complaints and unsubscribe links come beside them */
  suppressionsPerUser: 1_000_000,
  /** a delivery to `slow@…` of the sandbox takes so long */
  mailSandboxSlowMillis: 5_000
}
