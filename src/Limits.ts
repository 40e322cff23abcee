import { agentLimits } from "./AgentLimits.ts"
import { countingLimits } from "./CountingLimits.ts"

/**
 * Every number that bounds the system, with its unit in its name. A number that a person may want to change per
 * installation is an environment variable (see Config.ts); these are the defaults that tests shrink.
 */
export const limits = {
  // --- requests
  /** body of a browser event, `POST /api/event`; above it 413 */
  eventBodyBytes: 64 * 1024,
  /** body of a server-side batch, `POST /api/v1/collect`; above it 413 */
  collectBodyBytes: 8 * 1024 * 1024,
  /** events in one `collect` body */
  collectEvents: 100,
  /** body of every other JSON endpoint; above it 413 */
  jsonBodyBytes: 256 * 1024,
  /** one account file, unless `MAX_FILE_SIZE` says otherwise; above it 413 */
  fileBytes: 100 * 1024 * 1024,
  /** all request headers together, handed to uWebSockets.js as UWS_HTTP_MAX_HEADERS_SIZE; above it 431 */
  headerBytes: 16 * 1024,

  /** connections at once, where the system lets a process have as many files open; further ones are closed */
  connections: 50_000,
  /** where there is room for fewer, the server does not start */
  connectionsMin: 100,
  /** files kept free of connections, for the log, the stores' connections and uploads */
  filesReserved: 900,

  // --- rates
  /** requests a key may make in a minute, unless the key carries a rate of its own */
  ratePerMinute: 600,
  /** requests a key may make at once before the rate counts */
  rateBurst: 120,
  /** the highest rate that a person may give a key of their own, unless `RATE_PER_MINUTE_MAX` says otherwise */
  ratePerMinuteMax: 6_000,
  /** keys of one user that are not revoked */
  keysPerUser: 100,
  /** sites of one user */
  sitesPerUser: 1_000,
  /** browser events a minute for one site and visitor */
  visitorEventsPerMinute: 300,
  /** browser events a minute for one site and address (of IPv6, the /64), whatever visitors it makes up */
  addressEventsPerMinute: 3_000,
  /** addresses a minute whose events are counted; beyond it the older half is forgotten */
  limitedAddresses: 250_000,
  /** collected events a second for one site */
  siteEventsPerSecond: 6_000,
  /** visitors a minute whose events are counted; beyond it the older half is forgotten */
  limitedVisitors: 1_000_000,
  /** sites whose collected events are counted; beyond it the oldest is forgotten */
  limitedSites: 100_000,
  /** answers under way are looked over this often for keys that have ended; with `mirrorPollMillis` less than a second */
  keyWatchMillis: 200,
  /** an idle bucket is forgotten after this long; it would be full again by then */
  rateBucketIdleMillis: 120_000,
  /** requests' worth of tokens that one machine leases from Redis at a time */
  rateLeaseTokens: 20,

  // --- ingest of events
  /** User-Agents whose reading is remembered */
  userAgents: 20_000,
  /** addresses of pages and referrers whose reading is remembered, of up to 1,024 characters */
  pageUrls: 8_192,
  /** ids of events remembered for one site; beyond it the oldest are forgotten before their 24 hours are over */
  eventIdsPerSite: 10_000_000,
  /** sites whose files of event ids are open at once */
  eventIdSitesOpen: 64,
  /** sites with realtime figures in memory; beyond it the quietest is forgotten */
  realtimeSites: 10_000,
  /** visitors on pages in the last five minutes that realtime figures know by name, over all sites */
  realtimePresences: 500_000,
  /** counts of dropped events are written to Postgres this often; a crash loses as much of them */
  dropFlushMillis: 1_000,

  // --- disk
  /** room that a first start with embedded stores needs under DATA_DIR; they take about 50 MiB of it */
  dataDirFreeBytes: 96 * 1024 * 1024,
  /** with less room than this under DATA_DIR the disk counts as full on `/readyz` and in the log … */
  diskFreeBytesMin: 32 * 1024 * 1024,
  /** … which is looked at this often */
  diskCheckMillis: 5_000,

  // --- durable log
  /** a log that its consumers leave behind grows to this size, then refuses with 429 */
  logBytes: 4 * 1024 * 1024 * 1024,
  /** one segment file; the unit of truncation */
  logSegmentBytes: 64 * 1024 * 1024,
  /** bytes that one group commit may carry */
  logCommitBytes: 4 * 1024 * 1024,
  /** group commits begin at least so far apart: what an answer may wait under load for others to share its fdatasync */
  logCommitEveryMillis: 4,
  /** what a 429 of a full log asks the client to wait */
  logFullRetryAfterSeconds: 5,
  /** records that each consumer of a log sets aside because its store refuses them; beyond it the oldest are lost */
  quarantineRecords: 1_000,
  /** the bytes of them */
  quarantineBytes: 64 * 1024 * 1024,

  /** the log of imported events grows to this size while ClickHouse is behind, then parts of imports are refused with 429 */
  importLogBytes: 1024 * 1024 * 1024,

  // --- batches into ClickHouse
  /** a batch is written when it has this many rows … */
  batchRows: 50_000,
  /** … or this many bytes … */
  batchBytes: 16 * 1024 * 1024,
  /** … or when its oldest row has waited this long */
  batchAgeMillis: 500,
  /** a try to write a batch that takes longer has failed; its statements have limits of their own, `clickhouse…Millis` */
  batchWriteMillis: 600_000,
  /** pause before a failed batch is tried again, doubled up to `retryMaxMillis` */
  retryMinMillis: 100,
  retryMaxMillis: 5_000,
  /** a read makes its site's pending rows visible first, at most this often … */
  readFlushMillis: 250,
  /** … and is answered with what is there when they are not after so long */
  readWaitMillis: 5_000,
  /** sites of which it is remembered how far their part of a log goes; beyond it those that are written are forgotten */
  pendingSites: 10_000,
  /** a batch of imported events has at most this many rows */
  importBatchRows: 20_000,
  /** rows and months of a batch of imported events that are written before waiting live events have their turn */
  importTurnRows: 2_000,
  importTurnMonths: 2,

  // --- which process counts
  ...countingLimits,

  // --- threads for what would hold up the event loop
  /** threads of one process, for all rooms */
  workerThreads: 2,
  /** jobs that wait for one; above it 503 */
  workerWaiting: 1_000,
  /** a job that takes longer has failed */
  workerMillis: 10_000,
  /** heap of one thread; a job that needs more has failed */
  workerHeapMegabytes: 512,
  /** a thread without a job for so long is ended */
  workerIdleMillis: 300_000,

  // --- models
  /** the log of finished calls grows to this size when the ledger or ClickHouse is away; then calls are refused with 503 */
  callLogBytes: 1024 * 1024 * 1024,
  /** one segment file of the log of calls */
  callLogSegmentBytes: 16 * 1024 * 1024,
  /**
   * group commits of the log of calls begin at least so far apart. No answer waits for one: what was appended survives a
   * kill -9 without, and a power cut loses so much of charges
   */
  callLogCommitEveryMillis: 50,
  /** a call that the log refused is offered to it again this often */
  callLogRetryMillis: 100,
  /** body of a completion, images in it included; above it 413 */
  completionBodyBytes: 20 * 1024 * 1024,
  /** connections to the upstream: calls under way at once; a further one is refused with 503 */
  upstreamConnections: 5_000,
  /** a connection to the upstream that takes longer has failed; `UPSTREAM_CONNECT_SECONDS` */
  upstreamConnectMillis: 5_000,
  /** the first content of a stream has to come within this, else the next member is tried; `FIRST_TOKEN_SECONDS` */
  firstTokenMillis: 30_000,
  /** a call whose answer began later than this, or a plain one that took longer, has a line in the log */
  slowCallMillis: 30_000,
  /** … and within this where no other model is left to be tried; `LAST_FIRST_TOKEN_SECONDS` */
  lastFirstTokenMillis: 120_000,
  /** silence of a stream after which the upstream has failed; `STREAM_SILENCE_SECONDS` */
  streamSilenceMillis: 60_000,
  /** a plain answer has to be whole within this; `PLAIN_ANSWER_SECONDS` */
  plainAnswerMillis: 300_000,
  /** the head of a streamed answer is held back for so long at most, so that a change of member does not show */
  streamHeadMillis: 15_000,
  /** a comment is sent after so much silence */
  keepAliveMillis: 15_000,
  /** completions and embeddings under way at once, in fair shares per user; above it, or `upstreamConnections`, 503 */
  callsInFlight: 10_000,
  /** of these, of one user and of one key; a user alone gets half of `upstreamConnections` in any case */
  callsPerUser: 2_500,
  callsPerKey: 2_500,
  /**
   * bodies of the calls under way together, in fair shares per user, until they are sent to the last model that may be
   * asked; one that is parsed in place takes about five times its length. Above it 503
   */
  callBodiesBytes: 256 * 1024 * 1024,
  /** as `callBodiesBytes`, while Postgres is asked for a key that memory does not know, in fair shares per address */
  callStrangersBytes: 32 * 1024 * 1024,
  /** when the server ends, calls whose clients were sent away have so long to be settled: longer than `usageWaitMillis` */
  callsEndMillis: 8_000,
  /** output tokens that a stream without `max_tokens` holds at first, and that its hold is extended by */
  streamHoldTokens: 1_024,
  /** output tokens that a plain call without `max_tokens` holds at most */
  plainHoldTokens: 8_192,
  /** USD held for each plugin, search or tool that the upstream runs itself … */
  extraFeeUsd: 0.1,
  /** … and tokens, for what the model reads of it */
  extraTokens: 16_384,
  /** USD, the most that is believed of a call without a price in the list, unless `UPSTREAM_COST_MAX_USD` says otherwise */
  upstreamCostMaxUsd: 10,
  /** a call whose client has left is read on for so long, for its usage */
  usageWaitMillis: 5_000,
  /** output tokens a second that a model is taken to think at while nothing is seen of it */
  hiddenTokensPerSecond: 50,
  /** output tokens that the description of images may have */
  visionTokens: 1_024,
  /** characters whose tokens are counted where the upstream does not say; longer texts are estimated */
  countedCharacters: 2_000_000,
  /** a process says so often that it is at work on requests with an Idempotency-Key … */
  idempotencyBeatMillis: 10_000,
  /** … and one that has not for so long has died: with the pause between two of its words less than a minute */
  idempotencyDeadMillis: 45_000,
  /** answers of a user that are kept for repetitions … */
  idempotencyUserAnswers: 10_000,
  /** … and characters of them; beyond it the oldest cannot be repeated any more */
  idempotencyUserCharacters: 16 * 1024 * 1024,
  /** those of more than 24 hours ago are looked for this often */
  idempotencySweepMillis: 600_000,
  /** counting that takes longer is given up for an estimate */
  countMillis: 10_000,
  /** of a stream, kept in case its tokens have to be counted; what is longer is estimated by its pieces */
  producedBytes: 4 * 1024 * 1024,
  /** of one answer of the upstream that is not a stream, and of one frame of a stream */
  upstreamAnswerBytes: 32 * 1024 * 1024,
  /** failures in a row after which a member of a collection is left out … */
  breakerFailures: 5,
  /** … for so long at first, doubled each time its probe fails, … */
  breakerMinMillis: 10_000,
  /** … up to this; also the longest Retry-After that is believed */
  breakerMaxMillis: 300_000,
  /** a member that rate-limits without a Retry-After is left alone for so long */
  breakerLimitedMillis: 2_000,
  /** the health of a collection's members is forgotten after so long without a call */
  collectionRouteIdleMillis: 900_000,
  /** the upstream's list of models is fetched this often */
  catalogueRefreshMillis: 3 * 3_600_000,
  /** fetching it fails when it takes longer … */
  catalogueFetchMillis: 30_000,
  /** … or is longer; what was known before then counts on */
  catalogueBytes: 32 * 1024 * 1024,
  /** pause before a fetch that failed is tried again, doubled up to `catalogueRetryMaxMillis` */
  catalogueRetryMinMillis: 1_000,
  catalogueRetryMaxMillis: 300_000,
  /** how long a start waits for the first list; then it goes on with the copy of an earlier run, or none */
  catalogueStartMillis: 3_000,
  /** models of one collection */
  collectionModels: 100,
  /** collections of one user */
  collectionsPerUser: 1_000,
  /** how long a call waits for what other calls hold, before it is refused */
  ledgerWaitMillis: 2_000,
  /** calls of one user that wait so; further ones are refused at once */
  ledgerWaiting: 10_000,
  /** a call that waits asks the database again this often, when it hears nothing */
  ledgerPollMillis: 50,
  /** after another process has asked for them, leases of a user are not kept for so long */
  ledgerScarceMillis: 1_000,
  /** a lease that no call has used for so long is given back */
  ledgerIdleMillis: 10_000,
  /** users with leases at once */
  ledgerUsers: 10_000,
  /** a user without calls for so long is forgotten until the next one */
  ledgerUserIdleMillis: 900_000,
  /** a grant or a return that takes longer has failed */
  ledgerGrantMillis: 1_500,
  /** pause before a return that failed is tried again */
  ledgerRetryMillis: 200,
  /** a process says this often that it lives; one that has been silent for `ledgerSweepMillis` loses its leases … */
  ledgerHeartbeatMillis: 30_000,
  ledgerSweepMillis: 15 * 60_000,
  /** … to those that look for it this often */
  ledgerSweepEveryMillis: 60_000,
  /** calls that are settled in one transaction … */
  settlementRecords: 2_000,
  /** … or this many bytes of them … */
  settlementBytes: 4 * 1024 * 1024,
  /** … or when the oldest has waited this long */
  settlementAgeMillis: 100,

  ...agentLimits,

  // --- Postgres
  /** connections of this process */
  postgresConnections: 10,
  /** a connection attempt that takes longer has failed */
  postgresConnectMillis: 5_000,
  /** how long a start waits for a Postgres that does not answer yet */
  postgresStartMillis: 30_000,
  /** shared buffers of the embedded Postgres */
  postgresSharedBufferBytes: 64 * 1024 * 1024,
  /** how often keys, users and sites are compared with Postgres: a revocation holds everywhere within 1 s */
  mirrorPollMillis: 400,
  /** one poll that takes longer has failed; less than a second, so that a poll that hangs is noticed */
  mirrorPollTimeoutMillis: 900,
  /** rows of one mirrored table kept in memory */
  mirrorRows: 1_000_000,
  /** without a successful poll for this long, revocation counts as suspended and /readyz says so */
  mirrorStaleMillis: 1_000,

  // --- ClickHouse
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
  /** how long a start waits for the ClickHouse of CLICKHOUSE_URL; then it goes on without, and events wait in the log */
  clickhouseWaitMillis: 3_000,
  /** a statement without an answer for this long asks ClickHouse for a sign of life, and fails where there is none */
  clickhouseSilenceMillis: 2_000,

  // --- the embedded stores' processes
  /** pause before a store that died is started again, doubled up to `storeRestartMaxMillis` */
  storeRestartMinMillis: 50,
  storeRestartMaxMillis: 5_000,
  /** a store that has not stopped by then is killed */
  storeStopMillis: 10_000,

  // --- life of the process
  /** after SIGTERM everything in flight is given this long */
  drainMillis: 20_000,
  /** between /readyz turning 503 and the listener closing, so that a load balancer looks away first */
  drainNoticeMillis: 200,
  /** one check behind /readyz that takes longer counts as failed */
  readinessMillis: 1_000,
  /** the API's own request counts are written to Postgres this often */
  requestCountFlushMillis: 1_000
} as const

/** The limits of one process; tests replace single numbers. */
export type Limits = { readonly [K in keyof typeof limits]: number }
