/**
 * Requests that two parsers could read differently, or that have more behind them than was asked. `sneaked` is what an
 * attacker hopes to have answered.
 */
export const sneaked = "GET /sneaked HTTP/1.1\r\nHost: x\r\n\r\n"

/**
 * The behaviour that RFC 9112 allows. "refuse": an error status or none, then the end of the connection; "answer": the
 * request is valid and is answered; "either": a recipient may do one or the other.
 */
export type Allowed = "refuse" | "answer" | "either"

export interface AmbiguousRequest {
  readonly name: string
  /** of RFC 9112 */
  readonly section: string
  readonly allowed: Allowed
  /** `sneaked` is a request of its own by any reading: it may be answered where the connection goes on */
  readonly isPipelined?: boolean
  /**
   * uWebSockets.js does not show that the body is faulty: the part that it takes for the request may be answered, and
   * no more
   */
  readonly isUnseen?: boolean
  /** of a request with the body `abc` to that path; with all that comes behind it */
  readonly text: (path: string) => string
}

const post = (path: string, headers: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`

const chunks = "3\r\nabc\r\n0\r\n\r\n"

const long = String("abc".length + sneaked.length)

type Row = readonly [name: string, section: string, allowed: Allowed, rest: string]

/** Heads that a body of three bytes follows, and `sneaked`. */
const lengths: ReadonlyArray<Row> = [
  ["two lengths, the first short", "6.3", "refuse", `Content-Length: 3\r\nContent-Length: ${long}\r\n`],
  ["two lengths, the first long", "6.3", "refuse", `Content-Length: ${long}\r\nContent-Length: 3\r\n`],
  ["two equal lengths", "6.3", "either", "Content-Length: 3\r\nContent-Length: 3\r\n"],
  ["a length and an empty one", "6.3", "refuse", "Content-Length: 3\r\nContent-Length:\r\n"],
  ["an empty length and one", "6.3", "refuse", "Content-Length:\r\nContent-Length: 3\r\n"],
  ["a list of equal lengths", "6.3", "either", "Content-Length: 3, 3\r\n"],
  ["a list of lengths", "6.3", "refuse", `Content-Length: 3, ${long}\r\n`],
  ["a negative length", "6.3", "refuse", "Content-Length: -3\r\n"],
  ["a length with a sign", "6.3", "refuse", "Content-Length: +3\r\n"],
  ["a hexadecimal length", "6.3", "refuse", "Content-Length: 0x3\r\n"],
  ["a length with an exponent", "6.3", "refuse", "Content-Length: 3e0\r\n"],
  ["a length with a fraction", "6.3", "refuse", "Content-Length: 3.0\r\n"],
  ["a length with a space in it", "6.3", "refuse", "Content-Length: 3 7\r\n"],
  ["a length in words", "6.3", "refuse", "Content-Length: three\r\n"],
  ["no length in its line", "6.3", "refuse", "Content-Length:\r\n"],
  ["a length beyond 64 bits", "6.3", "refuse", "Content-Length: 18446744073709551619\r\n"],
  ["a length with a vertical tab", "6.3", "refuse", "Content-Length: \u000b3\r\n"],
  ["a space before the colon of a length", "5.1", "refuse", "Content-Length : 3\r\n"],
  ["a folded length", "5.2", "either", "Content-Length: 3\r\n 7\r\n"],
  ["a bare CR before a length", "2.2", "refuse", "X-A: 1\rContent-Length: 3\r\n"],
  ["a NUL in a length", "5.5", "refuse", "Content-Length: 3\u0000\r\n"],
  ["a line that begins with a space", "2.2", "either", " X-A: 1\r\nContent-Length: 3\r\n"],
  ["a length behind a tab", "5.1", "answer", "Content-Length:\t3\r\n"],
  ["a length with leading zeros", "6.3", "answer", "Content-Length: 003\r\n"],
  ["two hosts", "3.2", "refuse", "Host: y\r\nContent-Length: 3\r\n"]
]

/** Heads that chunks follow, and `sneaked`. */
const codings: ReadonlyArray<Row> = [
  ["a length before chunks", "6.3", "either", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"],
  ["a length behind chunks", "6.3", "either", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"],
  ["an empty length and chunks", "6.3", "either", "Content-Length:\r\nTransfer-Encoding: chunked\r\n"],
  ["an empty coding and a length", "6.3", "refuse", "Transfer-Encoding:\r\nContent-Length: 3\r\n"],
  ["an empty coding", "6.1", "refuse", "Transfer-Encoding:\r\n"],
  ["chunked twice in a list", "6.1", "refuse", "Transfer-Encoding: chunked, chunked\r\n"],
  ["chunked in two lines", "6.1", "refuse", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"],
  ["chunked and identity", "6.1", "refuse", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"],
  ["identity and chunked", "6.1", "refuse", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"],
  ["chunked and an empty line", "6.1", "either", "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n"],
  ["gzip before chunked", "6.1", "either", "Transfer-Encoding: gzip, chunked\r\n"],
  ["gzip behind chunked", "6.3", "refuse", "Transfer-Encoding: chunked, gzip\r\n"],
  ["identity", "6.1", "refuse", "Transfer-Encoding: identity\r\n"],
  ["an unknown coding", "6.1", "refuse", "Transfer-Encoding: xchunked\r\n"],
  ["chunked with a parameter", "6.1", "refuse", "Transfer-Encoding: chunked;q=1\r\n"],
  ["chunked in quotes", "6.1", "refuse", 'Transfer-Encoding: "chunked"\r\n'],
  ["chunked behind a vertical tab", "6.1", "refuse", "Transfer-Encoding: \u000bchunked\r\n"],
  ["chunked behind a comma", "6.1", "either", "Transfer-Encoding: ,chunked\r\n"],
  ["a space before the colon of a coding", "5.1", "refuse", "Transfer-Encoding : chunked\r\n"],
  ["a folded coding", "5.2", "either", "Transfer-Encoding:\r\n chunked\r\n"],
  ["a coding behind a bare LF", "2.2", "either", "X-A: 1\nTransfer-Encoding: chunked\r\n"]
]

/** Codings in order, which close the connection where the engine's reading of chunks cannot be trusted. */
const plain: ReadonlyArray<Row> = [
  ["chunked", "7.1", "answer", "Transfer-Encoding: chunked\r\n"],
  ["chunked in capitals", "7", "answer", "TRANSFER-ENCODING: CHUNKED\r\n"],
  ["chunked and a space", "5.1", "answer", "Transfer-Encoding: chunked \r\n"],
  ["chunked with Connection: close", "9.6", "answer", "Connection: close\r\nTransfer-Encoding: chunked\r\n"]
]

/** Chunks behind a plain head, up to `sneaked`. */
const chunkSyntax: ReadonlyArray<Row> = [
  ["a chunk extension", "7.1.1", "answer", "3;a=b\r\nabc\r\n0\r\n\r\n"],
  ["a size with leading zeros", "7.1", "answer", "0003\r\nabc\r\n000\r\n\r\n"],
  ["two chunks", "7.1", "answer", "1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"],
  ["a space behind the size", "7.1.1", "either", "3 \r\nabc\r\n0\r\n\r\n"],
  ["a hexadecimal prefix", "7.1", "refuse", "0x3\r\nabc\r\n0\r\n\r\n"],
  ["a size with a sign", "7.1", "refuse", "+3\r\nabc\r\n0\r\n\r\n"],
  ["a negative size", "7.1", "refuse", "-3\r\nabc\r\n0\r\n\r\n"],
  ["a size that is no number", "7.1", "refuse", "g\r\nabc\r\n0\r\n\r\n"],
  ["a size beyond 64 bits", "7.1", "refuse", "10000000000000003\r\nabc\r\n0\r\n\r\n"],
  ["no size", "7.1", "refuse", "\r\nabc\r\n0\r\n\r\n"],
  ["a bare LF behind the size", "7.1", "either", "3\nabc\r\n0\r\n\r\n"],
  ["a bare CR behind the size", "7.1", "refuse", "3\rabc\r\n0\r\n\r\n"],
  ["a bare LF in an extension", "7.1.1", "either", "3;a\nabc\r\n0\r\n\r\n"],
  ["a chunk that ends in two other bytes", "7.1", "refuse", "3\r\nabcXX0\r\n\r\n"],
  ["a chunk that ends in LF", "7.1", "either", "3\r\nabc\n0\r\n\r\n"],
  ["a chunk longer than its size", "7.1", "refuse", "3\r\nabcdef\r\n0\r\n\r\n"],
  ["a last chunk that ends in bare LFs", "7.1", "either", "3\r\nabc\r\n0\n\n"],
  ["a last chunk without its empty line", "7.1", "either", "3\r\nabc\r\n0\r\n"],
  ["a trailer", "7.1.2", "either", "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"],
  ["a trailer that names a length", "7.1.2", "either", "3\r\nabc\r\n0\r\nContent-Length: 99\r\n\r\n"],
  ["a trailer that names a coding", "7.1.2", "either", "3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"],
  [
    "a trailer that looks like a request",
    "7.1.2",
    "either",
    "3\r\nabc\r\n0\r\nXXGET: /sneaked HTTP/1.1\r\nHost: x\r\n\r\n"
  ],
  [
    "a request in the place of a trailer",
    "7.1.2",
    "refuse",
    "3\r\nabc\r\n0\r\nXXGET /sneaked HTTP/1.1\r\nHost: x\r\n\r\n"
  ]
]

const closing: ReadonlyArray<Row> = [
  ["Connection: close", "9.6", "answer", "Connection: close\r\nContent-Length: 3\r\n"],
  ["Connection: Close", "9.6", "answer", "Connection: Close\r\nContent-Length: 3\r\n"],
  ["close in a list", "9.6", "answer", "Connection: x, close\r\nContent-Length: 3\r\n"],
  ["close in a second line", "9.6", "answer", "Connection: x\r\nConnection: close\r\nContent-Length: 3\r\n"]
]

const rowsOf = (
  rows: ReadonlyArray<Row>,
  textOf: (path: string, rest: string) => string
): ReadonlyArray<AmbiguousRequest> =>
  rows.map(([name, section, allowed, rest]) => ({
    name,
    section,
    allowed,
    text: (path) => textOf(path, rest)
  }))

const heads: ReadonlyArray<AmbiguousRequest> = [
  {
    name: "no host",
    section: "3.2",
    allowed: "refuse",
    text: (path) => `POST ${path} HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc${sneaked}`
  },
  {
    name: "chunks in HTTP/1.0",
    section: "6.1",
    allowed: "refuse",
    text: (path) => post(path, "Transfer-Encoding: chunked\r\n").replace("1.1", "1.0") + chunks + sneaked
  },
  {
    name: "bare LFs in the head",
    section: "2.2",
    allowed: "either",
    text: (path) => post(path, "Content-Length: 3\r\n").replaceAll("\r\n", "\n") + `abc${sneaked}`
  },
  {
    name: "a request in the body",
    section: "6.2",
    allowed: "answer",
    text: (path) => `${post(path, `Content-Length: ${sneaked.length}\r\n`)}${sneaked}`
  },
  {
    name: "a request in the body of a GET",
    section: "6.2",
    allowed: "either",
    text: (path) => `${post(path, `Content-Length: ${sneaked.length}\r\n`).replace("POST", "GET")}${sneaked}`
  },
  {
    name: "two lengths of a GET",
    section: "6.3",
    allowed: "refuse",
    text: (path) =>
      `${post(path, `Content-Length: 3\r\nContent-Length: ${long}\r\n`).replace("POST", "GET")}abc${sneaked}`
  },
  {
    name: "two lengths of a HEAD",
    section: "6.3",
    allowed: "refuse",
    text: (path) =>
      `${post(path, `Content-Length: 3\r\nContent-Length: ${long}\r\n`).replace("POST", "HEAD")}abc${sneaked}`
  },
  {
    name: "two codings of an OPTIONS",
    section: "6.1",
    allowed: "refuse",
    text: (path) =>
      post(path, "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n").replace("POST", "OPTIONS") +
      chunks +
      sneaked
  },
  {
    name: "a body before a WebSocket",
    section: "6.3",
    allowed: "either",
    text: (path) =>
      `${post(
        path,
        `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${"A".repeat(22)}==\r\nContent-Length: 3\r\nContent-Length: 0\r\n`
      ).replace("POST", "GET")}abc${sneaked}`
  },
  {
    name: "the preface of HTTP/2",
    section: "2.3",
    allowed: "refuse",
    text: () => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${sneaked}`
  }
]

export const ambiguousRequests: ReadonlyArray<AmbiguousRequest> = [
  ...heads,
  ...rowsOf(lengths, (path, headers) => `${post(path, headers)}abc${sneaked}`).map((request) => ({
    ...request,
    isPipelined: request.allowed === "answer"
  })),
  ...rowsOf(codings, (path, headers) => post(path, headers) + chunks + sneaked),
  ...rowsOf(plain, (path, headers) => post(path, headers) + chunks + sneaked),
  ...rowsOf(chunkSyntax, (path, body) => post(path, "Transfer-Encoding: chunked\r\n") + body + sneaked).map(
    (request) => ({
      ...request,
      isUnseen: true
    })
  ),
  ...rowsOf(closing, (path, headers) => `${post(path, headers)}abc${sneaked}`)
]
