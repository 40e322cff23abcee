/** Numbers of Postgres and the jobs in it, of ClickHouse, and their processes where they are embedded. Part of `limits` (src/Limits.ts). */
export const storeLimits = {
  /** connections of this process */
  postgresConnections: 10,
  /** … of which changes of one user's files, which may wait for each other, have so many at most */
  changesPerUser: 4,
  /**
   * a connection attempt that takes longer has failed: long enough for a busy machine, where the event loop stands still for
   * seconds while the program's modules are loaded
   */
  postgresConnectMillis: 20_000,
  /** a connection that is silent for so long is asked by TCP, and ends some 10 s later where nobody answers */
  postgresKeepAliveMillis: 10_000,
  /** at the end of the server */
  postgresEndMillis: 10_000,
  /** how long a start waits for a Postgres that does not answer yet */
  postgresStartMillis: 30_000,
  /** shared buffers of the embedded Postgres */
  postgresSharedBufferBytes: 64 * 1024 * 1024,
  /** how often keys, users and sites are compared with Postgres: a revocation holds everywhere within 1 s */
  cachePollMillis: 400,
  /** one poll that takes longer has failed; less than a second, so that a poll that hangs is noticed */
  cachePollTimeoutMillis: 900,
  /** rows of one table kept in memory */
  cacheRows: 1_000_000,
  /** rows that were marked as gone are deleted after so long; a copy that heard nothing for half of it is read anew */
  goneMillis: 24 * 3_600_000,
  /** … and are looked for this often */
  sweepEveryMillis: 3_600_000,
  /** one sweep that takes longer is interrupted, and begun again */
  sweepMillis: 600_000,
  /** rows that one statement of it deletes */
  sweepRows: 1_000,
  /** without a successful poll for this long, revocation counts as suspended and /readyz says so */
  cacheStaleMillis: 1_000,
  /** an answer to an Idempotency-Key is repeated for so long; old ones are looked for this often, so many at a time */
  idempotencyKeptMillis: 24 * 3_600_000,
  idempotencySweepMillis: 600_000,
  idempotencySweepRows: 5_000,
  /** a process renews its claims on keys this often … */
  idempotencyBeatMillis: 10_000,
  /** … and one that has not for so long has died: with the pause between two renewals less than a minute */
  idempotencyDeadMillis: 45_000,
  /** a request that is carried out in one transaction is waited for by the same request; above it 409 */
  idempotencyWaitMillis: 2_000,
  /** answers of a user that are kept for repetitions … */
  idempotencyUserAnswers: 10_000,
  /** … and characters of them; beyond it the oldest cannot be repeated any more */
  idempotencyUserCharacters: 16 * 1024 * 1024,

  /** a server process notes this often that it is alive … */
  processBeatMillis: 5_000,
  /** … and is dead after so long a silence; its row goes after an hour */
  processDeadMillis: 20_000,
  processForgetMillis: 3_600_000,
  /** the connection that listens is asked for a sign of life this often … */
  listenCheckMillis: 10_000,
  /** … is lost without an answer within this … */
  listenAnswerMillis: 5_000,
  /** … and opened again so long after its loss */
  listenRetryMillis: 250,
  /** notices for other processes are gathered for so long … */
  noticeGatherMillis: 5,
  /** … into payloads of so many bytes; Postgres takes less than 8,000 */
  noticePayloadBytes: 7_900,
  /** topics that wait to be sent; beyond it the others are told that anything may be news */
  noticesUnsent: 10_000,
  /** a statement with notices that takes longer has failed … */
  noticeSendMillis: 5_000,
  /** … and is tried again after so long */
  noticeRetryMillis: 1_000,

  /** a query that takes longer fails */
  clickhouseQueryMillis: 30_000,
  /** an insert that takes longer fails (and is repeated with the same token) */
  clickhouseInsertMillis: 60_000,
  /** a command (schema, optimise) that takes longer fails */
  clickhouseCommandMillis: 600_000,
  /** connections to ClickHouse of this process */
  clickhouseConnections: 10,
  /** memory one query or insert in the embedded ClickHouse may take */
  clickhouseQueryBytes: 512 * 1024 * 1024,
  /** memory everything in the embedded ClickHouse may take together */
  clickhouseServerBytes: 900 * 1024 * 1024,
  /** the answer to one query of the embedded ClickHouse */
  clickhouseResultBytes: 128 * 1024 * 1024,
  /** statement or data of one request to the embedded ClickHouse; above it 413 */
  clickhouseBodyBytes: 256 * 1024 * 1024,
  /** requests that wait for one of the embedded ClickHouse's connections; above it 503 */
  clickhouseWaiting: 1_000,
  /** how long a start waits for the embedded ClickHouse's process */
  clickhouseStartMillis: 30_000,
  /** the embedded ClickHouse's process is started again for damage that a start mends, once it has run so long */
  clickhouseMendMillis: 20_000,
  /** how long a start waits for the ClickHouse of CLICKHOUSE_URL; then it goes on without, and events wait in the log */
  clickhouseWaitMillis: 3_000,
  /** ClickHouse is away when it does not answer within this that it is there */
  clickhousePingMillis: 1_000,
  /** a statement without an answer for this long asks ClickHouse for a sign of life, and fails where there is none */
  clickhouseSilenceMillis: 2_000,

  /** pause before a store that died is started again, doubled up to `storeRestartMaxMillis` */
  storeRestartMinMillis: 50,
  storeRestartMaxMillis: 5_000,
  /** a store that has not stopped by then is killed */
  storeStopMillis: 10_000,

  /** a blob that nothing refers to is removed after so long … */
  blobKeptMillis: 24 * 3_600_000,
  /** … by a sweep that is made this often */
  blobCollectEveryMillis: 3_600_000,
  /** the bytes of each blob are read and compared with their hash this often … */
  blobCheckMillis: 30 * 24 * 3_600_000,
  /** … by a sweep that is made this often … */
  blobScrubEveryMillis: 3_600_000,
  /** … and reads no faster than this, but for blobs that it would not end with in half a sweep's time */
  blobCheckBytesPerSecond: 64 * 1024 * 1024,
  /** an upload in several requests is over when nothing was appended to it for so long */
  uploadKeptMillis: 24 * 3_600_000,
  /** bytes that have come of such a request are written, and those that were written made durable, this often */
  uploadSyncMillis: 500,
  /** a request that only reads an upload's bytes shows this often that it is under way */
  uploadRenewMillis: 5_000,
  /** uploads whose bytes so far came to this process, of which it keeps the hash */
  uploadSumsKept: 1_000,
  /** the reservation of an upload in one request, which is renewed three times in that time: a process that dies leaves it */
  putKeptMillis: 15 * 60_000,
  /** blobs are counted for `/metrics` this often */
  blobCountsMillis: 60_000,

  /** connections to Postgres for taking and settling jobs, beside those of requests */
  jobConnections: 3,
  /** attempts that end with a change at once, of each queue: each has one of the connections of requests */
  jobChangesAtOnce: 3,
  /** a lane belongs to the process that took it for so long; it is renewed three times in that time */
  jobLeaseMillis: 30_000,
  /** a queue is looked at this often where no notice comes */
  jobPollMillis: 5_000,
  /** the payload of one job as JSON */
  jobPayloadBytes: 256 * 1024,
  /** jobs of one offer */
  jobsPerOffer: 50_000,
  /** pause after a first failed attempt, doubled with each up to `jobRetryMaxMillis` */
  jobRetryMinMillis: 1_000,
  jobRetryMaxMillis: 15 * 60_000,
  /** after so many attempts a job is dead, unless its queue says otherwise */
  jobAttemptsMax: 20,
  /** attempts under way when the process stops may take this long */
  jobStopMillis: 10_000,
  /** a lane that has been due for so long makes `jobs` degraded on `/readyz` */
  jobLateMillis: 60_000,
  /** counts of what waits are taken this often */
  jobCountsMillis: 10_000,
  /** ended jobs are kept this long … */
  jobsDoneMillis: 24 * 3_600_000,
  /** … and dead ones, which can be revived, this long */
  jobsDeadMillis: 90 * 24 * 3_600_000,
  /** rows of one statement that deletes old ones */
  jobsDeletedAtOnce: 50_000,
  /** a settlement waits so long for a lane that a transaction has locked; then the others go without it … */
  jobLockMillis: 250,
  /** … and it is tried again this much later; a lane that is due and locked is looked at again after as much at most */
  jobBlockedMillis: 200
} as const
