/** The characters allowed in a response's head (RFC 9110 5.1 and 5.5): anything else could end the line or the head. */

const names = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const plain = /^[\t\x20-\x7e]*$/
const latin = /^[\t\x20-\x7e\x80-\xff]*$/

export const isHeaderName = (name: string): boolean => names.test(name)

export const isHeaderValue = (value: string): boolean => latin.test(value)

/** The bytes of a value: uWebSockets.js would write strings as UTF-8 where HTTP and Node have Latin-1. */
export const headerBytes = (value: string): string | Uint8Array =>
  plain.test(value) ? value : Buffer.from(value, "latin1")

/** Headers that the front itself writes, from the body and the connection. */
export const isManaged = (name: string): boolean =>
  name === "content-length" ||
  name === "transfer-encoding" ||
  name === "connection" ||
  name === "keep-alive" ||
  name === "upgrade" ||
  name === "date"
