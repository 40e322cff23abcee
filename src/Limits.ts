import { accountsLimits } from "./accounts/Limits.ts"
import { agentLimits } from "./agents/Limits.ts"
import { analyticsLimits } from "./analytics/Limits.ts"
import { filesLimits } from "./files/Limits.ts"
import { storeLimits } from "./infra/StoreLimits.ts"
import { llmLimits } from "./llm/Limits.ts"
import { mailLimits } from "./mail/Limits.ts"
import { notifyLimits } from "./notify/Limits.ts"

/** Numbers of the process and of what all rooms share: requests, disk, durable logs, batches, threads. */
const serverLimits = {
  /** body of every other JSON endpoint; above it 413 */
  jsonBodyBytes: 256 * 1024,
  /** a longer body of a tool's call is read in a thread … */
  mcpInPlaceBytes: 1024 * 1024,
  /** … and one that is not read by then, or whose reading needs a larger heap, is answered 503 */
  mcpReadMillis: 10_000,
  mcpReadHeapMegabytes: 512,
  /** bytes of the bodies of all such calls under way, in fair shares per user; above it 503 */
  mcpBodiesBytes: 256 * 1024 * 1024,
  /** all request headers together, handed to uWebSockets.js as UWS_HTTP_MAX_HEADERS_SIZE; above it 431 */
  headerBytes: 16 * 1024,
  /** connections at once, where the system lets a process have as many files open; further ones are closed */
  connections: 50_000,
  /** where there is room for fewer, the server does not start */
  connectionsMin: 100,
  /** files kept free of connections, for the log, the stores' connections and uploads */
  filesReserved: 900,

  /** room that a first start with embedded stores needs under DATA_DIR; they take about 50 MiB of it */
  dataDirFreeBytes: 96 * 1024 * 1024,
  /** with less room than this under DATA_DIR the disk counts as full on `/readyz` and in the log … */
  diskFreeBytesMin: 32 * 1024 * 1024,
  /** … which is looked at this often */
  diskCheckMillis: 5_000,

  /** a log that its consumers leave behind grows to this size, then refuses with 429 */
  logBytes: 4 * 1024 * 1024 * 1024,
  /** one segment file; the unit of truncation */
  logSegmentBytes: 64 * 1024 * 1024,
  /** bytes that one group commit may carry */
  logCommitBytes: 4 * 1024 * 1024,
  /** the least time between group commits: under load an answer waits so long for others to share its fdatasync */
  logCommitEveryMillis: 4,
  /** the Retry-After of a full log's 429 */
  logFullRetryAfterSeconds: 5,
  /** records that each consumer of a log sets aside because its store refuses them; beyond it the oldest are lost */
  quarantineRecords: 1_000,
  /** the bytes of them */
  quarantineBytes: 64 * 1024 * 1024,

  /** a batch is written when it has this many rows … */
  batchRows: 50_000,
  /** … or this many bytes … */
  batchBytes: 16 * 1024 * 1024,
  /** … or when its oldest row has waited this long */
  batchAgeMillis: 500,
  /** live events go out at this age already, while no more than so many wait */
  eventsEarlyMillis: 250,
  eventsEarlyRows: 2_500,
  /** a try to write a batch that takes longer has failed; its statements have limits of their own, `clickhouse…Millis` */
  batchWriteMillis: 600_000,
  /** pause before a failed batch is tried again, doubled up to `retryMaxMillis` */
  retryMinMillis: 100,
  retryMaxMillis: 5_000,

  /** failures in a row after which a service (a member of a collection, a host of deliveries) is left alone … */
  breakerFailures: 5,
  /** … for so long at first, doubled each time its probe fails, … */
  breakerMinMillis: 10_000,
  /** … up to this; also the longest Retry-After of a member that is heeded */
  breakerMaxMillis: 300_000,

  /** of an address that a stranger gave: looking up its name … */
  egressNameMillis: 5_000,
  /** … in so many tries … */
  egressNameTries: 2,
  /** … a connection, with TLS … */
  egressConnectMillis: 5_000,
  /** … where the next of its addresses is tried beside one that says nothing for so long (RFC 8305, 8) … */
  egressAttemptMillis: 250,
  /** … the headers of its answer, and a request as a whole */
  egressHeadersMillis: 10_000,
  egressTotalMillis: 10_000,
  /** addresses of one name that are tried */
  egressAddresses: 8,
  /** bytes of an answer's headers and, unless the caller says otherwise, of its body */
  egressHeaderBytes: 16 * 1024,
  egressBodyBytes: 64 * 1024,
  /** early answers (103 and the like) before an answer */
  egressHints: 16,
  /** connections to one origin at once; further requests to it wait, as part of their time */
  egressConnectionsPerOrigin: 32,
  /** a connection without a request is kept for so long */
  egressIdleMillis: 4_000,
  /** requests and connections that are under way at once, for all rooms; above it they fail */
  egressUnderWay: 512,
  /** the addresses of the own interfaces are looked at again after so long */
  egressInterfacesMillis: 10_000,
  /** refused addresses that are logged in a minute */
  egressLogPerMinute: 60,

  /** threads of one process for jobs of all rooms; each kind of job has a deadline and memory of its own … */
  workerThreads: 2,
  /** … and child processes, for jobs that a thread could not bear */
  workerProcesses: 2,
  /** jobs that wait for a thread, or for a child process; above it 503 */
  workerWaiting: 1_000,
  /** a worker that has not begun its job by then is ended */
  workerStartMillis: 30_000,
  /** a job whose caller has gone is given so long; then its worker is ended */
  workerLeaveMillis: 100,
  /** a worker without a job for so long is ended */
  workerIdleMillis: 300_000,

  /** a body that comes more slowly than 1 KiB/s for so long is answered 408 */
  slowBodyMillis: 10_000,

  /** after SIGTERM everything in flight is given this long */
  drainMillis: 20_000,
  /** between /readyz turning 503 and the listener closing, so that a load balancer looks away first */
  drainNoticeMillis: 200,
  /** one check behind /readyz that takes longer counts as failed */
  readinessCheckMillis: 2_000
} as const

/**
 * Every number that bounds the system, with its unit in its name; each room has its own in its `Limits.ts`. A number that a
 * person may want to change per installation is an environment variable (see Config.ts); these are the defaults that tests
 * shrink.
 */
export const limits = {
  ...serverLimits,
  ...storeLimits,
  ...accountsLimits,
  ...analyticsLimits,
  ...llmLimits,
  ...agentLimits,
  ...notifyLimits,
  ...mailLimits,
  ...filesLimits
} as const

/** The limits of one process; tests replace single numbers. */
export type Limits = { readonly [K in keyof typeof limits]: number }
