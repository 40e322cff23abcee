/** Every number of the front. The defaults are meant for a machine that faces the internet. */
export interface FrontLimits {
  /** request line and headers together; above it 431. One value per process: uWebSockets.js reads it once */
  readonly maxHeaderBytes: number
  /** the app's `MaxBodySize` where a route sets none of its own; above it 413 */
  readonly maxBodyBytes: number
  /** connections beyond this are closed as they arrive */
  readonly maxConnections: number
  /** until a connection has sent its request's headers. uWebSockets.js has 10 s built in, in steps of 4 s */
  readonly headerTimeoutMillis: number
  /** an idle connection is closed after this. uWebSockets.js has 10 s built in, in steps of 4 s */
  readonly keepAliveMillis: number
  /** a body that arrives slower than this is dropped with its connection... */
  readonly minUploadBytesPerSecond: number
  /** ...on a hot route, where it is held in memory, slower than this, and answered 408... */
  readonly minHotUploadBytesPerSecond: number
  /** ...as measured over windows of this length */
  readonly slowUploadWindowMillis: number
  /** a client that takes nothing of its answer for this long is dropped */
  readonly stalledReaderMillis: number
  /** as `stalledReaderMillis`, for streamed answers of hot and raw routes, and answers out of files */
  readonly stalledStreamMillis: number
  /** bytes of a body held in memory before the client is made to wait */
  readonly bodyHighWaterBytes: number
  /** answers out of files are read in blocks of this size... */
  readonly fileBlockBytes: number
  /** ...so many at a time, shared by all of them */
  readonly fileBlocks: number
  /** bytes of all unfinished bodies of hot routes whose senders are known, in fair shares per user; above it 503 */
  readonly hotBodiesBytes: number
  /** as `hotBodiesBytes`, for senders who are not known, in fair shares per address (IPv6: per /64) */
  readonly strangersBodiesBytes: number
  /** an answer that comes before the body has ended waits while at most this much of the body is thrown away... */
  readonly lingerBytes: number
  /** ...and at most this long; then the connection is closed after the answer */
  readonly lingerMillis: number
  /** how long requests in flight may take once the server is asked to stop */
  readonly drainDeadlineMillis: number
  /** a longer WebSocket message closes its socket */
  readonly webSocketMaxPayloadBytes: number
  /** messages received and not yet read by the handler; above it the socket is closed with 1013 */
  readonly webSocketMaxUnreadBytes: number
  /** bytes sent and not yet taken by the client before a write waits */
  readonly webSocketHighWaterBytes: number
  /** bytes of a hot socket that its client has not taken; a sender drops a socket with more waiting */
  readonly webSocketMaxBufferedBytes: number
  /** a hot socket that is closed while bytes wait for its client goes on so long to deliver them */
  readonly webSocketLingerMillis: number
  /** a socket that neither sends nor answers pings for this long is closed. 0 or 8 to 960 s, in steps of 4 s */
  readonly webSocketIdleTimeoutSeconds: number
}

const defaultLimits: FrontLimits = {
  maxHeaderBytes: 16 * 1024,
  maxBodyBytes: 1024 * 1024,
  // Well above the 10,000 half-open ones that honest clients must not suffer from; each costs a few kilobytes.
  maxConnections: 50_000,
  headerTimeoutMillis: 10_000,
  keepAliveMillis: 10_000,
  minUploadBytesPerSecond: 1024,
  minHotUploadBytesPerSecond: 4096,
  slowUploadWindowMillis: 10_000,
  stalledReaderMillis: 10_000,
  // A model's answer is dear and its readers are slow on purpose: people scroll, laptops sleep a moment.
  stalledStreamMillis: 60_000,
  bodyHighWaterBytes: 256 * 1024,
  fileBlockBytes: 256 * 1024,
  fileBlocks: 64,
  hotBodiesBytes: 128 * 1024 * 1024,
  strangersBodiesBytes: 32 * 1024 * 1024,
  // More than the longest body that is held whole: a client that is refused reads why.
  lingerBytes: 96 * 1024 * 1024,
  lingerMillis: 15_000,
  drainDeadlineMillis: 10_000,
  webSocketMaxPayloadBytes: 1024 * 1024,
  webSocketMaxUnreadBytes: 4 * 1024 * 1024,
  webSocketHighWaterBytes: 256 * 1024,
  webSocketMaxBufferedBytes: 8 * 1024 * 1024,
  webSocketLingerMillis: 10_000,
  webSocketIdleTimeoutSeconds: 120
}

export interface FrontOptions {
  /** 0 for any free port */
  readonly port: number
  /** the address to listen on; "0.0.0.0" when absent */
  readonly host?: string | undefined
  /** "auto" (the default) takes uWebSockets.js where its addon loads and Node's own server elsewhere */
  readonly engine?: "auto" | "node" | undefined
  /** origins that may read answers of hot routes whose `cors` is "configured"; "*" for any */
  readonly corsOrigins?: ReadonlyArray<string> | undefined
  /** proxies in front of this server: how many hops, or their networks (CIDR). Without it X-Forwarded-For counts for nothing */
  readonly trustProxy?: number | ReadonlyArray<string> | undefined
  readonly limits?: Partial<FrontLimits> | undefined
}

export const limitsOf = (options: FrontOptions): FrontLimits => ({ ...defaultLimits, ...options.limits })
