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
  /** attempts at deliveries that one process makes at once … */
  deliveryAttempts: 64,
  /** … of them at one push service … */
  deliveriesPerPushOrigin: 32,
  /** … and at one host of webhooks */
  deliveriesPerWebhookHost: 4,
  /** an attempt waits so long for one of these, behind as many others as are let through, where the host is no slower … */
  deliveryTurnMillis: 100,
  /** … else its channel rests until its turn, as the host's pace has it, for so long at most */
  deliveryRestMillis: 30_000,
  /** a channel looks again so much later where this server is busy, or its host is being probed */
  deliveryPauseMillis: 1_000,
  /** an attempt that takes longer is given up; one request has `egressTotalMillis` */
  deliveryAttemptMillis: 25_000,
  /** from acceptance, or from a redrive; then a delivery is dead */
  deliveryMillis: 72 * 3_600_000,
  /** with so many dead ones in a row a channel is failing */
  deadInARow: 10,
  /** dead deliveries that one redrive has wait again */
  deliveriesPerRedrive: 10_000,
  /** messages whose texts are kept in memory while their deliveries are made, 4 KB each */
  messagesInMemory: 1_000,
  /** a delivery is kept so long after its end … */
  deliveriesKeptMillis: 30 * 24 * 3_600_000,
  /** … and a dead one, which can be redriven, so long */
  deliveriesDeadMillis: 90 * 24 * 3_600_000,
  /** messages that one statement deletes, of projects that are deleted */
  deletedMessagesAtOnce: 1_000
} as const
