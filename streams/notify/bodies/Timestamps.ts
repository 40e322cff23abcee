/** Instants that lines of logs begin with, as common programs write them. */
const forms = [
  // 2026-11-23T04:00:00.123+01:00, 2026/11/23 04:00:00,123
  /\d{4}[-/]\d\d[-/]\d\d(?:[T ]{1,2}\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?/,
  // 04:00:00.123
  /\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?/,
  // Nov 23 04:00:00, Mon Nov 23 04:00:00 2026
  /(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: [A-Z]{3,4})?(?: \d{4}\b)?/,
  // 23/Nov/2026:04:00:00 +0000
  /\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?/,
  // I1123 04:00:00.123456
  /[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d{1,9})?/,
  // seconds since the start, or since 1970
  / {0,8}\d{1,10}\.\d{3,9}(?=[\] ])/
]

const anyForm = forms.map(({ source }) => source).join("|")

const atBegin = new RegExp(`^[[(]?(?:${anyForm})[\\])]?`)

const behindLevel = new RegExp(`^(?:[A-Z]{3,8}:? {1,4}|\\[[A-Z]{3,8}\\] {0,4})[[(]?(?:${anyForm})`)

/** An access log has the address and its user before. */
const accessLog =
  /^[0-9A-Fa-f.:]{2,45} \S{1,64} \S{1,64} \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]/

/** Nothing that is longer is read. */
const headLength = 240

/** Characters at the beginning of a line that say when it was written; 0 for none. */
export const timestampLength = (line: string): number =>
  atBegin.exec(line.slice(0, headLength))?.[0].length ?? 0

/** Whether a line says when it was written, at its begin or behind a level or an address. */
export const isStamped = (line: string): boolean => {
  const head = line.slice(0, headLength)
  return atBegin.test(head) || behindLevel.test(head) || accessLog.test(head)
}
