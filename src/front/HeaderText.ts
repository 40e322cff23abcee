/** The characters allowed in a response's head (RFC 9110 5.1 and 5.5): anything else could end the line or the head. */

const names = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const plain = /^[\t\x20-\x7e]*$/
const latin = /^[\t\x20-\x7e\x80-\xff]*$/

export const isHeaderName = (name: string): boolean => names.test(name)

export const isHeaderValue = (value: string): boolean => latin.test(value)

/** A value that is the same in Latin-1 and in UTF-8. */
export const isPlainValue = (value: string): boolean => plain.test(value)

/** Headers that the front itself writes, from the body and the connection. */
export const isManaged = (name: string): boolean =>
  name === "content-length" ||
  name === "transfer-encoding" ||
  name === "connection" ||
  name === "keep-alive" ||
  name === "upgrade" ||
  name === "date"

/** Header names that were seen to be safe; the names that handlers use are few and constant. */
const safeNames = new Set<string>()

const isSafeName = (name: string): boolean => {
  if (safeNames.has(name)) return true
  if (!isHeaderName(name) || isManaged(name.toLowerCase())) return false
  if (safeNames.size < 1000) safeNames.add(name)
  return true
}

/** A header of a hot or raw answer is left out where it could end the line, or where the front writes it. */
export const isWritable = (name: string, value: string): boolean => isSafeName(name) && isHeaderValue(value)
