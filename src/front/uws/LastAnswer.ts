import type { UwsRequest, UwsResponse } from "./Addon.ts"
import { type FrontAnswer, jsonType } from "../FrontAnswer.ts"
import { statusLine } from "../StatusLine.ts"

/**
 * The last answer of a connection: to a request that was refused because two parsers could read it differently, to a
 * chunked one (uWebSockets.js reads chunks more leniently than RFC 9112 7.1, and does not show them), and to one that
 * says `Connection: close`. Nothing that came behind it may be served.
 *
 * `end` with its second argument closes the connection as soon as the answer has left, but within a native callback
 * that is when all bytes of the packet have been read, and whatever was in them served. There are three ways round it.
 * An answer that is longer than the cork leaves at once, and the native code stops reading a socket that has been shut
 * down. While an answer is pending, a request behind it closes the connection: so the answer waits until the callback is
 * over. And a socket that is paused reads nothing more: it is closed by its client, or by its timer after some 12 s.
 */

/** The bytes that uWebSockets.js gathers in a cork before it writes. */
const corkBytes = 16 * 1024

/** A last answer longer than this is handed over in steps, as nothing may be left in the native buffer at its end. */
export const shortBytes = corkBytes

/** Once the native callback that runs now, and with it the packet, is over. A microtask would run before. */
export const afterDispatch = (write: () => void): void => {
  setImmediate(write)
}

const padding = " ".repeat(corkBytes)

/** Within the native handler of the request: the answer, and the end of the connection before anything else is read. */
export const answerAndClose = (
  response: UwsResponse,
  request: UwsRequest,
  { status, body }: FrontAnswer
): void => {
  // There is nothing that an answer to HEAD could be made longer with.
  if (request.getCaseSensitiveMethod() === "HEAD") return void response.close()
  response
    .writeStatus(statusLine(status))
    .writeHeader(...jsonType)
    .end(body + padding, true)
}
