import * as Cookies from "effect/http/Cookies"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import type { UwsResponse } from "./Addon.ts"
import type { HeaderBlock } from "../HeaderBlock.ts"
import { isHeaderName, isHeaderValue, isManaged, isPlainValue } from "../HeaderText.ts"
import { isFinalStatus, statusLine } from "../StatusLine.ts"

/** A response's head that is safe to write as it is. */
export interface ResponseHead {
  readonly status: number
  readonly statusLine: string
  /** name, value, name, value... without those that the front writes itself */
  readonly headers: ReadonlyArray<string>
  /** the Content-Length that the app declared, for answers without a body of ours */
  readonly contentLength: string | undefined
  /** the app asked for the connection to be closed */
  readonly closes: boolean
}

/** Throws a TypeError or RangeError on what must not be written: half a head cannot be taken back. */
export const headOf = (response: HttpServerResponse): ResponseHead => {
  if (!isFinalStatus(response.status))
    throw new RangeError(`Invalid final response status: ${response.status}`)
  const headers: Array<string> = []
  let closes = false
  for (const name in response.headers) {
    const value = response.headers[name] ?? ""
    if (isManaged(name)) closes ||= name === "connection" && value.toLowerCase() === "close"
    else add(headers, name, value)
  }
  if (!Cookies.isEmpty(response.cookies)) {
    for (const cookie of Cookies.toSetCookieHeaders(response.cookies)) add(headers, "set-cookie", cookie)
  }
  return {
    status: response.status,
    statusLine: statusLine(response.status, response.statusText),
    headers,
    contentLength: lengthOf(response.headers["content-length"]),
    closes
  }
}

const add = (headers: Array<string>, name: string, value: string): void => {
  if (!isHeaderName(name) || !isHeaderValue(value)) throw new TypeError(`Invalid response header: ${name}`)
  headers.push(name, value)
}

const lengthOf = (declared: string | undefined): string | undefined =>
  declared !== undefined && /^\d+$/.test(declared) ? declared : undefined

/**
 * Headers of one answer, written by as few native calls as can be: the lines behind a first one are a part of its value.
 * Names and values have to be those of `isHeaderName` and `isHeaderValue`: nothing else keeps them to their lines.
 */
class HeaderLines {
  private name = ""
  private lines = ""

  add(response: UwsResponse, name: string, value: string): void {
    if (!isPlainValue(value)) {
      this.write(response)
      // A string would be written as UTF-8 where HTTP and Node have Latin-1.
      response.writeHeader(name, Buffer.from(value, "latin1"))
    } else if (this.name === "") {
      this.name = name
      this.lines = value
    } else this.lines += `\r\n${name}: ${value}`
  }

  addBlock(response: UwsResponse, { lines, name }: HeaderBlock): void {
    this.write(response)
    if (name !== "") response.writeHeader(name, lines)
  }

  write(response: UwsResponse): void {
    if (this.name !== "") response.writeHeader(this.name, this.lines)
    this.name = ""
    this.lines = ""
  }
}

/** One for all answers: writing is synchronous, so that there is only ever one. */
export const headerLines = new HeaderLines()

/** The status line and headers; only within a cork. */
export const writeHead = (response: UwsResponse, head: ResponseHead): void => {
  response.writeStatus(head.statusLine)
  const headers = head.headers
  for (let index = 0; index < headers.length; index += 2)
    headerLines.add(response, headers[index] ?? "", headers[index + 1] ?? "")
  headerLines.write(response)
}

/**
 * The end of an answer to HEAD, or of a 204 or 304. The native call must have no argument: with one, a length that
 * is not 0 or undefined, it leaves the request pending for ever, and so the length is written like every other header.
 */
export const endWithoutBody = (response: UwsResponse, contentLength: string | undefined): void => {
  if (contentLength !== undefined) response.writeHeader("Content-Length", contentLength)
  response.endWithoutBody()
}
