/** Numbers of notifications. Part of `limits` (src/Limits.ts). */
export const notifyLimits = {
  /** body of `POST /api/v1/messages`; above it 413 */
  messageBodyBytes: 8 * 1024 * 1024,
  /** projects of one user */
  projectsPerUser: 1_000,
  /** project keys of one user that are not revoked */
  projectKeysPerUser: 100,
  /** deliveries that one send may make, over all its projects; above it 400 */
  deliveriesPerSend: 50_000,
  /** with more deliveries of one owner waiting, sends are 429 … */
  deliveriesWaiting: 1_000_000,
  /** … by a count that is so old at most */
  deliveriesCountedMillis: 2_000,
  /** a send that takes longer is given up, and nothing of it is left */
  sendMillis: 30_000,
  /** messages that one statement deletes, of projects that are deleted */
  deletedMessagesAtOnce: 1_000
} as const
