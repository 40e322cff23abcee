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
  /** messages that one statement deletes, of projects that are deleted and such as are old */
  deletedMessagesAtOnce: 1_000,
  /** days after which a message goes, unless `MESSAGE_DAYS` says otherwise … */
  messageDays: 90,
  /** … and its link is said to be gone for so long, rather than unknown */
  goneMessageDays: 365,
  /** one attachment, unless `MAX_ATTACHMENT_SIZE` says otherwise; above it 413 */
  attachmentBytes: 2 * 1024 ** 3,
  /** bytes of the attachments of one owner, unless `ATTACHMENT_QUOTA` says otherwise; above it 507 */
  attachmentQuotaBytes: 20 * 1024 ** 3,
  /** an upload that no message has is deleted after this … */
  unusedAttachmentMillis: 24 * 3_600_000,
  /** … the bytes of one that a message has after this, or with the message … */
  attachmentKeptMillis: 30 * 24 * 3_600_000,
  /** … by a sweep that is made this often, of so many at a time */
  attachmentSweepEveryMillis: 10 * 60_000,
  attachmentsAtOnce: 500,
  /** attachments are counted for `/metrics` this often */
  attachmentCountsMillis: 60_000
} as const
