/** Numbers of notifications. Part of `limits` (src/Limits.ts). */
export const notifyLimits = {
  /** body of `POST /api/v1/messages`; above it 413 */
  messageBodyBytes: 8 * 1024 * 1024,
  /** bytes of such bodies under way, and of the fields of forms, in fair shares per user; above it 503 */
  messageBodiesBytes: 64 * 1024 * 1024,
  /** body of a call of a tool; above it 413 */
  messageCallBytes: 80 * 1024 * 1024,
  /** a call that takes longer is a failed result */
  messageCallMillis: 120_000,
  /** projects of one user */
  projectsPerUser: 1_000,
  /** project keys of one user that are not revoked */
  projectKeysPerUser: 100,
  /** deliveries that one send may make, over all its projects; above it 400 */
  deliveriesPerSend: 50_000,
  /** with more deliveries of one owner waiting, sends are 429 … */
  deliveriesWaiting: 1_000_000,
  /** … by a count that is so old at most, or older where counting takes long: by a minute more while the next one is made */
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
  attachmentCountsMillis: 60_000,
  /** joins from one address (of IPv6, its /64) in a fixed hour; above it 429 */
  joinsPerHour: 20,
  /** tests of channels from one address in a fixed hour */
  channelTestsPerHour: 60,
  /** requests to settings of subscribers from one address */
  settingsRequestsPerMinute: 120,
  /** subscribers of one project; above it 409 */
  subscribersPerProject: 10_000,
  /** channels of one subscriber; above it 409 */
  channelsPerSubscriber: 20,
  /** in which a webhook has to take the link by which it is confirmed, and the part of its answer that is read */
  confirmationMillis: 10_000,
  confirmationAnswerBytes: 64 * 1024,
  /** a webhook that is not confirmed, and a subscriber who has been without a project or a channel, are deleted after so long */
  unconfirmedMillis: 7 * 86_400_000,
  subscriberIdleMillis: 30 * 86_400_000,
  /** deliveries of which their owner sees at once that they are dropped; of the others at their turn */
  deliveriesDroppedAtOnce: 10_000,
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
  /** hosts of which failures are remembered; beyond it those that were asked first are forgotten */
  deliveryHosts: 10_000,
  /** a channel looks again so much later where this server is busy, or its host is being probed */
  deliveryPauseMillis: 1_000,
  /** an attempt that takes longer is given up; one request has `egressTotalMillis` */
  deliveryAttemptMillis: 25_000,
  /** … and at Telegram, whose pace lets no more through */
  deliveriesAtTelegram: 8,
  /** messages of Telegram's bot are so far apart, those to one chat so far, and a group gets so many in a minute, of all processes */
  telegramPaceMillis: 40,
  telegramChatPaceMillis: 1_000,
  telegramGroupPerMinute: 18,
  /** an attempt waits so long for its turn there; beyond it the lane rests until it */
  telegramTurnMillis: 300,
  /** connections to the Bot API, and the time to make one */
  telegramConnections: 16,
  telegramConnectMillis: 5_000,
  /** bytes of an answer: of 100 updates */
  telegramAnswerBytes: 4 * 1024 * 1024,
  /** a request for updates is answered after so long, if none comes before … */
  telegramPollMillis: 25_000,
  /** … and given up so much later, as is any other one after so long */
  telegramAnswerMillis: 10_000,
  /** updates of one answer */
  telegramUpdates: 100,
  /** the poll is repeated so much later where Telegram cannot be reached, or another program reads the updates */
  telegramPauseMillis: 5_000,
  /** without an answer for so long `/readyz` is degraded */
  telegramSilentMillis: 60_000,
  /** ids of updates may begin anew after a week without any: beyond so long a lower one counts */
  telegramQuietMillis: 6 * 86_400_000,
  /** replies to commands that are made at once */
  telegramReplies: 4,
  /** a code joins a chat within so long, and its use is known for so long */
  telegramCodeMillis: 15 * 60_000,
  telegramCodeKeptMillis: 24 * 3_600_000,
  /** codes from one address in a fixed hour */
  telegramCodesPerHour: 60,
  /** from acceptance, or from a redrive; then a delivery is dead */
  deliveryMillis: 72 * 3_600_000,
  /** with so many dead ones in a row a channel is failing */
  deadInARow: 10,
  /** dead deliveries that one redrive has wait again */
  deliveriesPerRedrive: 10_000,
  /** messages whose texts are kept in memory while their deliveries are made, 4 KB each */
  messagesInMemory: 1_000,
  /** digests that are due are looked for this often … */
  digestEveryMillis: 1_000,
  /** … and those of so many deliveries closed in one transaction, or all of one subscriber where these are more */
  digestItemsAtOnce: 1_000,
  /** … after which others have Postgres for so many times as long as that took */
  digestRest: 1,
  /** messages of a digest that its page shows; of the others it says how many */
  digestPageItems: 500,
  /** a delivery is kept so long after its end … */
  deliveriesKeptMillis: 30 * 24 * 3_600_000,
  /** … and a dead one, which can be redriven, so long */
  deliveriesDeadMillis: 90 * 24 * 3_600_000,
  /** pause between counts of deliveries, for `/metrics` and `/readyz` … */
  deliveriesCountedEveryMillis: 10_000,
  /** … where one that has been due for so long is degraded */
  deliveriesLateMillis: 60_000
} as const
