/** Limits of the model router. Part of `limits` (src/Limits.ts). */
export const llmLimits = {
  /** a large body that is not read by then is refused … */
  bodyReadMillis: 10_000,
  /** … as is one whose reading needs a larger heap */
  bodyReadHeapMegabytes: 512,
  /** the log of finished calls grows to this size when the ledger or ClickHouse is away; then calls are refused with 503 */
  callLogBytes: 1024 * 1024 * 1024,
  /** one segment file of the log of calls */
  callLogSegmentBytes: 16 * 1024 * 1024,
  /**
   * group commits of the log of calls begin at least so far apart. Answers do not wait for them: an appended record
   * survives a kill -9 without, and a power cut loses so much of charges
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
  /** … and tokens, for the model's reading of it */
  extraTokens: 16_384,
  /** USD, the highest believable cost of a call without a listed price, unless `UPSTREAM_COST_MAX_USD` sets another */
  upstreamCostMaxUsd: 10,
  /** a call whose client has left is read on for so long, for its usage */
  usageWaitMillis: 5_000,
  /** output tokens a second that a model is assumed to think at while its thoughts are not visible */
  hiddenTokensPerSecond: 50,
  /** output tokens that the description of images may have */
  visionTokens: 1_024,
  /** characters whose tokens are counted if the upstream does not report them; longer texts are estimated */
  countedCharacters: 2_000_000,
  /** counting that takes longer is given up for an estimate */
  countMillis: 10_000,
  /** of a stream, kept in case its tokens have to be counted; longer ones are estimated by their pieces */
  producedBytes: 4 * 1024 * 1024,
  /** of one answer of the upstream that is not a stream, and of one frame of a stream */
  upstreamAnswerBytes: 32 * 1024 * 1024,
  /** a member of a collection that rate-limits without a Retry-After is left alone for so long */
  breakerLimitedMillis: 2_000,
  /** the health of a collection's members is forgotten after so long without a call */
  collectionRouteIdleMillis: 900_000,
  /** the upstream's list of models is fetched this often */
  catalogueRefreshMillis: 3 * 3_600_000,
  /** fetching it fails when it takes longer … */
  catalogueFetchMillis: 30_000,
  /** … or is longer; the last list then stays in use */
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
  /** how long a call waits for other calls' holds, before it is refused */
  ledgerWaitMillis: 2_000,
  /** calls of one user that wait so; further ones are refused at once */
  ledgerWaiting: 10_000,
  /** a waiting call asks the database again this often, if no notification comes */
  ledgerPollMillis: 50,
  /** after another process has asked for them, leases of a user are not kept for this long */
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
  /** a process reports this often that it is alive; a silence of `ledgerSweepMillis` costs it its leases … */
  ledgerHeartbeatMillis: 30_000,
  ledgerSweepMillis: 15 * 60_000,
  /** … by processes that look for it this often */
  ledgerSweepEveryMillis: 60_000,
  /** calls that are settled in one transaction … */
  settlementRecords: 2_000,
  /** … or this many bytes of them … */
  settlementBytes: 4 * 1024 * 1024,
  /** … or when the oldest has waited this long */
  settlementAgeMillis: 100,
  /** a try to settle a batch that takes longer has failed */
  settlementWriteMillis: 30_000
} as const
