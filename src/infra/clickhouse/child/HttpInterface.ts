import { createHash, timingSafeEqual } from "node:crypto"
import { createWriteStream, mkdirSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { join } from "node:path"
import { Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ChildOptions } from "./ChildOptions.ts"
import { type Engine, literal, NotWanted, type Statement } from "./Engine.ts"
import { SlotsFull } from "./Slots.ts"

/** Parameters of the HTTP interface that are no settings. */
const reserved = new Set(["query", "database", "default_format", "query_id", "role", "wait_end_of_query"])
const refused = ["session_id", "compress", "decompress", "user", "password"]

/** `INSERT INTO t (a, b) [SETTINGS …] FORMAT RowBinary`, its data in the body */
const insertWithData = /^(\s*INSERT\s+INTO\s[\s\S]*?)(\sSETTINGS\s[\s\S]*?)?\sFORMAT\s+(\w+)\s*;?\s*$/i

/** `INSERT INTO t (a, b) SELECT … FROM input('a UInt8, b UInt8') …`: the table function that stands for the body */
const inputFunction = /\bFROM\s+input\(\s*('(?:[^'\\]|\\.)*')\s*\)/i

/** HTTP statuses as ClickHouse answers them (its exceptionCodeToHTTPStatus); all others are 500. */
const statuses = new Map<number, number>([
  ...[27, 38, 41, 43, 53, 62, 69, 70, 72, 117].map((code) => [code, 400] as const),
  ...[46, 47, 50, 56, 60, 73, 81, 115, 456].map((code) => [code, 404] as const),
  [48, 501],
  [159, 408],
  [161, 413],
  [202, 503],
  [516, 403]
])

class Refusal extends Error {
  readonly code: number
  constructor(code: number, name: string, text: string) {
    super(`Code: ${code}. DB::Exception: ${text}. (${name})`)
    this.code = code
  }
}

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest()

/**
 * The part of ClickHouse's HTTP interface that @clickhouse/client uses: statements with settings and parameters, and
 * inserts of any format. Not there: sessions, compression, progress headers, multi-part bodies. Source: the pages
 * "HTTP interface" and "Settings" of ClickHouse's documentation.
 */
export class HttpInterface {
  readonly server: Server
  private readonly engine: Engine
  private readonly options: ChildOptions
  private readonly credentials: Buffer
  private files = 0

  constructor(engine: Engine, options: ChildOptions) {
    this.engine = engine
    this.options = options
    this.credentials = sha256(
      `Basic ${Buffer.from(`${options.username}:${options.password}`).toString("base64")}`
    )
    rmSync(options.incomingDirectory, { recursive: true, force: true })
    mkdirSync(options.incomingDirectory, { recursive: true })
    // Long lists of values travel as parameters, that is in the request line.
    this.server = createServer(
      { maxHeaderSize: 1024 * 1024, keepAliveTimeout: 30_000 },
      (request, response) => {
        this.answer(request, response).catch((error: unknown) => this.fail(request, response, error))
      }
    )
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://127.0.0.1")
    if (url.pathname === "/ping") {
      response.end("Ok.\n")
      return
    }
    if (url.pathname !== "/") throw new Refusal(36, "BAD_ARGUMENTS", "There is no such path")
    if (!timingSafeEqual(sha256(request.headers.authorization ?? ""), this.credentials)) {
      throw new Refusal(516, "AUTHENTICATION_FAILED", "Authentication failed: password is incorrect")
    }
    for (const name of refused) {
      if (url.searchParams.get(name) !== null && url.searchParams.get(name) !== "0") {
        throw new Refusal(
          48,
          "NOT_IMPLEMENTED",
          `The embedded ClickHouse does not know the parameter ${name}`
        )
      }
    }
    const query = url.searchParams.get("query")
    const insert = query === null ? null : insertWithData.exec(query)
    const isWanted = (): boolean => !response.destroyed
    const result =
      insert === null
        ? await this.engine.execute(this.statement(url, (query ?? "") + (await this.text(request)), isWanted))
        : await this.insert(request, url, insert, isWanted)
    response.writeHead(200, {
      "content-type": "text/plain; charset=UTF-8",
      "content-length": result.length,
      "x-clickhouse-query-id": url.searchParams.get("query_id") ?? ""
    })
    response.end(result)
  }

  private statement(url: URL, sql: string, isWanted: () => boolean): Statement {
    const settings = new Map<string, string>()
    const parameters = new Map<string, string>()
    for (const [name, value] of url.searchParams) {
      if (name.startsWith("param_")) parameters.set(name.slice(6), value)
      else if (!reserved.has(name) && !refused.includes(name)) settings.set(name, value)
    }
    const format = url.searchParams.get("default_format") ?? "TabSeparated"
    return {
      sql,
      format,
      database: url.searchParams.get("database") ?? undefined,
      settings,
      parameters,
      isWanted
    }
  }

  /**
   * The engine reads the data from a file. Handed over in memory, chdb takes it for the text of statements: rows after
   * a byte that looks like a semicolon or a quote are then lost without an error.
   */
  private async insert(
    request: IncomingMessage,
    url: URL,
    [, head = "", settings = "", format = ""]: ReadonlyArray<string>,
    isWanted: () => boolean
  ): Promise<Uint8Array> {
    const file = join(this.options.incomingDirectory, String(++this.files))
    try {
      const size = await this.receive(request, file)
      // An empty insert is a success in ClickHouse too, but an empty file has no format.
      if (size === 0) return new Uint8Array(0)
      const isSelected = inputFunction.test(head)
      const sql = isSelected
        ? head.replace(
            inputFunction,
            (_, columns) => `FROM file(${literal(file)}, ${literal(format)}, ${columns})`
          ) + settings
        : `${head} FROM INFILE ${literal(file)}${settings} FORMAT ${format}`
      return await this.engine.execute(this.statement(url, sql, isWanted))
    } finally {
      rmSync(file, { force: true })
    }
  }

  private async receive(request: IncomingMessage, file: string): Promise<number> {
    let size = 0
    const bounded = new Transform({
      transform: (chunk: Uint8Array, _, done) => {
        size += chunk.length
        if (size > this.options.bodyBytes) done(this.tooLarge())
        else done(null, chunk)
      }
    })
    await pipeline(request, bounded, createWriteStream(file, { mode: 0o600 }))
    return size
  }

  private async text(request: IncomingMessage): Promise<string> {
    const chunks: Array<Uint8Array> = []
    let size = 0
    for await (const chunk of request) {
      size += chunk.length
      if (size > this.options.bodyBytes) throw this.tooLarge()
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  }

  private tooLarge(): Refusal {
    return new Refusal(161, "QUERY_IS_TOO_LARGE", `The body is larger than ${this.options.bodyBytes} bytes`)
  }

  private fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (error instanceof NotWanted || response.destroyed || response.headersSent) {
      response.destroy()
      return
    }
    const known =
      error instanceof SlotsFull
        ? new Refusal(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many simultaneous queries")
        : error instanceof Error && "code" in error && error.code === "ENOSPC"
          ? new Refusal(243, "NOT_ENOUGH_SPACE", "Not enough space on the disk")
          : error
    const message = known instanceof Error ? known.message : String(known)
    const code = Number(/Code: (\d+)/.exec(message)?.[1] ?? 1001)
    const text = /Code: \d/.test(message) ? message : `Code: 1001. DB::Exception: ${message}. (STD_EXCEPTION)`
    // Not all of the body may have been read: then the connection cannot carry another request.
    response.writeHead(statuses.get(code) ?? 500, {
      "content-type": "text/plain; charset=UTF-8",
      "x-clickhouse-exception-code": code,
      ...(request.complete ? {} : { connection: "close" })
    })
    response.end(`${text}\n`)
  }
}
